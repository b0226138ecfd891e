"""How well every metric foretells performance on every target: the table that papers have."""
