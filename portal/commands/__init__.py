"""What organisers do, as commands and in the browser."""
