"""Simulations of how often intervals and tests hold what they state."""
