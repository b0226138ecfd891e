"""Labelled photos and where they come from."""
