"""How stable the evaluation of transferability metrics is."""
