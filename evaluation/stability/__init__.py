"""How far the evaluation of transferability metrics can be trusted."""
