"""Speed and memory, measured side by side by hand: `python -m benchmarks.orderings` and its neighbours."""
