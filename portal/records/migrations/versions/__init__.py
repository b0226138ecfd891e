"""One file for each change, in their order."""
