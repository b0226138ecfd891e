"""Alignment of representations: scores of submissions, matrices, searches."""
