"""Pure functions: the criterion, the curves and their statistics."""
