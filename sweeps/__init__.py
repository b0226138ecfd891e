"""Sweeps: many runs of train.py, of which only the traces that the ledger lacks are measured."""
