"""Speed and memory, measured side by side by hand: `python -m headstart.benchmarks.orderings` and its neighbours."""
