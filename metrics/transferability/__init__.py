"""Transferability metrics."""
