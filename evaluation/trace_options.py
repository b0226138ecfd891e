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
        **options: Options of `TraceOptions`.
    """

    def __init__(
        self, tuned: dict[str, str | list[str]] | None = None, choose: dict[str, str] | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        self.tuned = {name: [on] if isinstance(on, str) else on for name, on in (tuned or {}).items()}
        self.choose = choose or {}

    def describe(self) -> dict[str, Any]:
        """Return `asked` as it stands in `leaderboard.json`."""
        return {key: getattr(self, key) for key in ("criterion", "where", "baseline", "methods", "tuned", "choose")}
