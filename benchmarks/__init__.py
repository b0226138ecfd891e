"""Measurements by hand: speed in `headstart.benchmarks.speed` and its neighbours, coverage of intervals."""
