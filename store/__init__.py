"""Rows and traces on disk, computed once; only `output` is imported here, and no torch."""
