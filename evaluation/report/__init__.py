"""The report of results of all kinds: one HTML page with tables and charts."""
