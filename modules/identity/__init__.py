"""What decides a count besides data: the code that runs, its packages, files, environment variables and values."""
