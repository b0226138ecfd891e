"""The work on submissions: receiving, validating, queueing and scoring them."""
