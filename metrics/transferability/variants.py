"""The variants of a metric whose paper and released program differ."""

from typing import Literal, get_args

Variant = Literal["released", "published"]


def check_variant(variant: str) -> None:
    """Raise a ValueError for a variant that there is not."""
    if variant not in get_args(Variant):
        raise ValueError(f"variant must be {' or '.join(get_args(Variant))}, not {variant!r}")
