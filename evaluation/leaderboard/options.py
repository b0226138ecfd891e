"""Options of a leaderboard."""

from __future__ import annotations

from typing import Any

from headstart.evaluation.trace_options import TraceOptions


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
