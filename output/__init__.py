"""What a person sees: errors, parsers, files, tables and the dashboard."""
