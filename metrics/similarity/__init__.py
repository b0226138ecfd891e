"""Similarity of representations."""
