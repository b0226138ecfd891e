"""Sweeps: many runs of headstart train, of which only the traces that the ledger lacks are measured."""
