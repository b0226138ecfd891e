"""The page that a comparison is sent as: one HTML file with tables, charts and what it takes to replicate them."""
