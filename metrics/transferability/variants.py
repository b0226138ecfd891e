"""The variants of a metric whose paper and released program differ."""

from typing import Any, Literal, get_args

Variant = Literal["released", "published"]


def check_choice(name: str, value: object, kind: Any) -> None:  # noqa: ANN401 - a Literal
    """Raise a ValueError, which begins with the argument's name, for a value that is none of a Literal."""
    if value not in get_args(kind):
        raise ValueError(f"{name} must be {' or '.join(get_args(kind))}, not {value!r}")
