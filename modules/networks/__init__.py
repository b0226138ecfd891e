"""Frozen networks: which, with which weights, and what they give."""
