"""Rows on disk, computed once: no other package of this project is imported here, nor torch."""
