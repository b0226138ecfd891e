"""Commands that write files for others to read, and the validator of submissions."""
