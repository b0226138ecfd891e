"""The methods of the suite by the names of their classes, in `catalogue.csv`; reading it imports none of them."""

import csv
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ShippedMethod:
    """One method of the suite.

    Attributes:
        name: Its name in tables, that of its class with underscores: `gaussian_discriminant_analysis`.
        title: What it does, in one line.
        inputs: What it can be fed: `features` of a frozen backbone, `photos` for a backbone of its own.
        needs_source_head: Whether it learns from the backbone's classifier of source classes.
    """

    name: str
    title: str
    inputs: tuple[str, ...]
    needs_source_head: bool

    @property
    def module(self) -> str:
        """The module that defines its class."""
        return f"headstart.modules.methods.{self.name}"


with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as file:
    METHODS = {
        row["class"]: ShippedMethod(
            row["name"], row["title"], tuple(row["inputs"].split()), row["needs_source_head"] == "yes"
        )
        for row in csv.DictReader(file)
    }
