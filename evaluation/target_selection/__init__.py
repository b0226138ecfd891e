"""Which target one source model transfers to best."""
