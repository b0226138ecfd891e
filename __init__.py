"""Headstart: how much of a head start a pre-trained model gives, and which method makes most of it."""

from headstart.output.import_paths import hide_own_names

__version__ = "0.1.0"

hide_own_names()
