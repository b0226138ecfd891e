"""Options of commands that score traces, and of leaderboards."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from jsonargparse.typing import ClosedUnitInterval, PositiveInt

from headstart.evaluation.runs import BASELINE


class LeaderboardOptions:
    """Criterion, settings and methods of commands that score traces.

    Args:
        threshold: Validation accuracy to reach. By default that of the runs, or 0.8 for a ledger without runs.
        consecutive: Evaluations in a row that must reach it. By default that of the runs, or 10 for a ledger without
            runs.
        where: Select settings, or streams of a ledger, by the options in which they differ: --where.batch_size=8.
        baseline: The method that the others are compared with: its name, or its class if no other method has this
            class.
        methods: Names or classes of the other methods; all by default.
        tuned: Methods whose hyperparameters were chosen on validation photos, with the data sets of these photos:
            --tuned.replay=cats_and_dogs. The methods are marked in settings of these data sets.
        incomplete: Include runs that were cut off; they are left out by default.
        per_class: Numbers of labels per class at which accuracies are compared, such as '[1,2,4,8,16]'. For streams
            with --data.order=balanced.
        at: Numbers of labels at which accuracies are compared, in any stream.
    """

    def __init__(
        self,
        threshold: ClosedUnitInterval | None = None,
        consecutive: PositiveInt | None = None,
        where: dict[str, Any] | None = None,
        baseline: str = BASELINE,
        methods: list[str] | None = None,
        tuned: dict[str, str | list[str]] | None = None,
        incomplete: bool = False,
        per_class: list[PositiveInt] | None = None,
        at: list[PositiveInt] | None = None,
    ) -> None:
        self.criterion: dict[str, Any] = {}
        if threshold is not None:
            self.criterion["threshold"] = float(threshold)
        if consecutive is not None:
            self.criterion["consecutive"] = int(consecutive)
        self.where, self.baseline, self.methods = where or {}, baseline, methods
        self.tuned = {name: [on] if isinstance(on, str) else on for name, on in (tuned or {}).items()}
        self.incomplete = incomplete
        self.per_class = [int(each) for each in per_class or ()]
        self.at = [int(each) for each in at or ()]

    def describe(self) -> dict[str, Any]:
        """Return the options as JSON values, the key `asked` of `leaderboard.json`."""
        options = {key: getattr(self, key) for key in ("criterion", "where", "baseline", "methods", "tuned")}
        further = {key: getattr(self, key) for key in ("incomplete", "per_class", "at")}
        return {**options, **{key: value for key, value in further.items() if value}}


class Budget(NamedTuple):
    """A label budget.

    Attributes:
        labels: Number of labelled samples.
        per_class: Number of them in each class; None where the stream is not balanced.
    """

    labels: int
    per_class: int | None


def is_balanced(protocol: Mapping[str, Any]) -> bool:
    """Return whether a stream holds each class equally often."""
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
