"""Options of commands that score traces: the criterion, and which traces are scored."""

from __future__ import annotations

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
