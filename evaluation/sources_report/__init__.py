"""How well every metric predicts performance on every target: the table that papers have."""
