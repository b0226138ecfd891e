"""The evaluation contract: its documents, read as untrusted input."""
