"""How well metrics rank, and how far rankings agree."""
