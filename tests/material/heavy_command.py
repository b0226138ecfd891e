"""A command that only its own name imports."""


def heavy_command() -> None:
    """Do something heavy."""
