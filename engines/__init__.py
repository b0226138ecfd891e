"""Where independent pieces of work run: here one after the other, in processes beside, or on a Ray cluster."""
