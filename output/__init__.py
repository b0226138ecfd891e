"""Output for people: errors, parsers, files, tables and the dashboard."""
