"""The report of a comparison: one HTML page with tables, charts and the commands that replicate them."""
