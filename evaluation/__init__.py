"""What `evaluate.py` runs."""
