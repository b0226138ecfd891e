"""Label budgets that are requested of a stream."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from headstart.evaluation.trace_options import LeaderboardOptions


class Budget(NamedTuple):
    """A label budget.

    Attributes:
        labels: Number of labelled samples.
        per_class: Number of them in each class; None where the stream is not balanced.
    """

    labels: int
    per_class: int | None


def is_balanced(protocol: Mapping[str, Any]) -> bool:
    """Whether a stream holds each class equally often."""
    return protocol.get("order") == "balanced" and bool(protocol.get("classes"))


def requested_budgets(protocol: Mapping[str, Any], options: LeaderboardOptions) -> list[Budget]:
    """Return the requested budgets of a stream in ascending order.

    Args:
        protocol: The protocol of the stream.
        options: The options.
    """
    if not is_balanced(protocol):
        return [Budget(labels, None) for labels in sorted(options.at)]
    classes = len(protocol["classes"])
    numbers = {*options.at, *(classes * each for each in options.per_class)}
    return [Budget(each, None if each % classes else each // classes) for each in sorted(numbers)]


def requested_labels(protocol: Mapping[str, Any], options: LeaderboardOptions) -> list[int]:
    """Return the numbers of labels of the requested budgets; see `requested_budgets`."""
    return [budget.labels for budget in requested_budgets(protocol, options)]
