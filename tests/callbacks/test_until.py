"""Runs that continue to the sample limit after every trace has met the criterion."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from headstart.callbacks import ComparisonRun, SampleEfficiency
from headstart.output.errors import UserError

Script = Callable[..., Any]
COUNTS = np.where(np.random.default_rng(3).random((2, 3, 30)) < 0.9, 17, 12)
CRITERION: dict[str, Any] = {"threshold": 0.8, "consecutive": 2}


def test_every_evaluation_up_to_the_limit_is_made(script: Script) -> None:
    short = script(COUNTS, folder="short", results=ComparisonRun(), **CRITERION)
    whole = script(COUNTS, folder="whole", results=ComparisonRun(), until="limit", **CRITERION)
    assert short.evaluations < 30
    assert whole.correct.tolist() == COUNTS.tolist()
    assert whole.stopped_because == "the sample limit was reached"
    assert whole.results.document["criterion"]["until"] == "limit"
    assert whole.results.document["times"]["computed_traces"] == 6
    for name, scores in short.results.document["methods"].items():
        longer = whole.results.document["methods"][name]
        assert all(longer[key] == scores[key] for key in ("samples_to_criterion", "onset", "median", "restricted_mean"))


def test_traces_up_to_the_limit_serve_runs_that_stop_at_the_criterion(script: Script) -> None:
    script(COUNTS, folder="whole", results=ComparisonRun(), until="limit", **CRITERION)
    for options in ({}, {"until": "limit"}, {"until": "limit", "max_samples": 20}):
        again = script(COUNTS, folder=f"again {options}", results=ComparisonRun(), **options, **CRITERION)
        assert again.results.document["times"]["computed_traces"] == 0
    # A higher limit is measured from the beginning.
    script(
        COUNTS[..., :20],
        folder="low",
        results=ComparisonRun(ledger=str(again.folder / "own")),
        until="limit",
        **CRITERION,
    )
    high = script(
        COUNTS, folder="high", results=ComparisonRun(ledger=str(again.folder / "own")), until="limit", **CRITERION
    )
    assert high.correct.tolist() == COUNTS.tolist()
    assert high.results.document["times"]["computed_traces"] == 6


@pytest.mark.parametrize("other", [{"stop_when_met": True}, {"evaluation": "lazy"}])
def test_a_run_that_stops_at_the_criterion_cannot_continue_to_the_limit(other: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"^criterion\.until: limit continues after the criterion, but criterion\."):
        SampleEfficiency(until="limit", **other)
