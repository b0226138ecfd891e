"""A command that imports nothing."""


def light_command(size: int, name: str = "x", long_name: str = "") -> None:
    """Do something light.

    Args:
        size: How much.
        name: What.
        long_name: More.
    """
    print(f"{name}: {size}{long_name}")
