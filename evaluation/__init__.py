"""The evaluations that `evaluate.py` runs."""
