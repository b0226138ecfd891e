"""Measurements by hand: speed in `headstart.benchmarks.speed.orderings` and its neighbours, coverage of intervals."""
