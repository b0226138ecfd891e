"""The report of a comparison: one HTML page with tables and charts."""
