"""Everything besides data that decides a count: running code, its packages, files, environment variables, values."""
