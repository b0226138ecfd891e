"""The command lines of the entry points."""
