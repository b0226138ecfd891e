"""Drawn pictures: the embedded default and its source task."""
