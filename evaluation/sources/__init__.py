"""Which source model to transfer to a target."""
