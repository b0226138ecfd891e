"""Engines run independent tasks: one after the other in this process, in worker processes, or on a Ray cluster."""
