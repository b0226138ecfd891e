"""Options of commands that score traces, and of leaderboards."""

from typing import Any

from jsonargparse.typing import ClosedUnitInterval, PositiveInt

from headstart.evaluation.runs import BASELINE


class TraceOptions:
    """Criterion and selection of traces.

    Args:
        threshold: Validation accuracy that counts as reached; by default the runs' own, 0.8 of a ledger alone.
        consecutive: Evaluations in a row at which it must be reached; by default the runs' own, 10 of a ledger alone.
        where: Which settings, or which of a ledger's streams, by what differs between them: --where.batch_size=8.
        baseline: The method that the others are compared with: its name, or its class where that is the only one of it.
        methods: Names or classes of the other methods; all by default.
    """

    def __init__(
        self,
        threshold: ClosedUnitInterval | None = None,
        consecutive: PositiveInt | None = None,
        where: dict[str, Any] | None = None,
        baseline: str = BASELINE,
        methods: list[str] | None = None,
    ) -> None:
        self.criterion: dict[str, Any] = {}
        if threshold is not None:
            self.criterion["threshold"] = float(threshold)
        if consecutive is not None:
            self.criterion["consecutive"] = int(consecutive)
        self.where, self.baseline, self.methods = where or {}, baseline, methods


class LeaderboardOptions(TraceOptions):
    """Criterion, settings and methods of a leaderboard.

    Args:
        tuned: Methods to be marked in settings on whose validation photos their hyperparameters were chosen, with the
            data set or data sets of these: --tuned.replay=cats_and_dogs.
        choose: Variants of one method that become one row, by the row's name: --choose.ridge='ridge_*'. On each data
            set the row is that variant which is best on the other data sets.
        incomplete: Include runs that were cut off. By default a setting leaves them out where other runs were not, and
            what pools settings leaves out settings of such runs alone.
        per_class: Numbers of labels per class at which methods are compared by their accuracy, such as '[1,2,4,8,16]',
            in streams with --data.order=balanced.
        at: Numbers of labels at which they are, in any stream.
        axis: An option in which settings differ, such as data.batch_size: methods are shown by its values.
        **options: Options of `TraceOptions`.
    """

    def __init__(
        self,
        tuned: dict[str, str | list[str]] | None = None,
        choose: dict[str, str] | None = None,
        incomplete: bool = False,
        per_class: list[PositiveInt] | None = None,
        at: list[PositiveInt] | None = None,
        axis: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.incomplete = incomplete
        self.tuned = {name: [on] if isinstance(on, str) else on for name, on in (tuned or {}).items()}
        self.choose = choose or {}
        self.per_class = [int(each) for each in per_class or ()]
        self.at = [int(each) for each in at or ()]
        self.axis = axis

    def describe(self) -> dict[str, Any]:
        """Return the options as JSON values, the key `asked` of `leaderboard.json`."""
        options = {key: getattr(self, key) for key in ("criterion", "where", "baseline", "methods", "tuned", "choose")}
        further = {key: getattr(self, key) for key in ("incomplete", "per_class", "at", "axis")}
        return {**options, **{key: value for key, value in further.items() if value}}
