"""Pages of docs/results, made from runs."""
