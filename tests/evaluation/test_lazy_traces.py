"""Traces that were evaluated lazily are scored by their own criterion alone, whatever reads them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from headstart.evaluation.leaderboard.leaderboard import leaderboard
from headstart.evaluation.report.report import report
from headstart.evaluation.sample_efficiency import sample_efficiency
from headstart.metrics.sample_efficiency.curves import SKIPPED
from headstart.metrics.sample_efficiency.lazy_evaluation import next_evaluation
from headstart.output.errors import UserError
from headstart.tests.material.ledgers import store
from headstart.tests.material.pages import Page
from headstart.tests.material.runs import write_run

METHODS = ("baseline", "mine", "third")
LIMIT = 80
RISE = np.random.default_rng(0).uniform(3, 8, (len(METHODS), 6, 1)) * (1 + np.arange(len(METHODS)))[:, None, None]
EVERY = np.random.default_rng(1).binomial(100, 0.97 - 0.45 * np.exp(-np.arange(LIMIT) / RISE))
OTHER = "threshold: evaluations that were left out would decide"


def lazily(counts: NDArray[np.int64], required: int = 80, consecutive: int = 3) -> NDArray[np.int64]:
    """Leave out of whole traces what lazy evaluation leaves out, `[methods, orderings, evaluations]`."""
    known = np.full_like(counts, SKIPPED)
    for index in np.ndindex(*counts.shape[:2]):
        while (wanted := next_evaluation(known[index], required, consecutive)) is not None and wanted < LIMIT:
            known[index][wanted] = counts[index][wanted]
    return known


@pytest.fixture
def lazy(tmp_path: Path) -> Path:
    """Write a run that was evaluated lazily, for 80 % at 3 evaluations."""
    return write_run(tmp_path / "lazy", lazily(EVERY), limit=LIMIT, methods=METHODS)


@pytest.fixture
def every(tmp_path: Path) -> Path:
    """Write the run that it is a part of."""
    return write_run(tmp_path / "every", EVERY, limit=LIMIT, methods=METHODS)


def test_the_own_criterion_gives_the_scores_of_every_evaluation(lazy: Path, every: Path) -> None:
    known, all_of_them = (sample_efficiency(str(folder)) for folder in (lazy, every))
    assert known["comparisons"] == all_of_them["comparisons"]
    for name, scores in all_of_them["methods"].items():
        assert known["methods"][name]["onset"] == scores["onset"]
        assert known["methods"][name]["accuracy_at"]["50"] == [None] * 6


def test_another_criterion_is_refused(lazy: Path) -> None:
    others: list[dict[str, Any]] = [{"threshold": 0.85}, {"threshold": 0.75}, {"consecutive": 1}, {"consecutive": 10}]
    for criterion in others:
        with pytest.raises(UserError, match=OTHER):
            sample_efficiency(str(lazy), **criterion)
    with pytest.raises(UserError, match=OTHER):
        leaderboard(str(lazy), output=str(lazy.parent / "out"), threshold=0.85)


def test_a_leaderboard_knows_its_own_criterion_alone(tmp_path: Path) -> None:
    # One of the grid: 80 % at 10 evaluations in a row.
    settings = {}
    for name, counts in (("lazy", lazily(EVERY, 80, 10)), ("every", EVERY)):
        traces = dict(zip(METHODS, counts, strict=True))
        own: dict[str, Any] = {"lazy": {"threshold": 0.8, "consecutive": 10}} if name == "lazy" else {}
        document = leaderboard(str(store(tmp_path / name, traces, **own)), output=str(tmp_path / f"{name} out"))
        settings[name] = document["settings"][0]
        grid = {
            (cell["threshold"], cell["consecutive"]): cell for cell in document["sensitivity"]["settings"][0]["grid"]
        }
        assert grid[0.8, 10]["order"]
        assert bool(grid[0.8, 5]["order"]) == bool(grid[0.75, 10]["order"]) == (name == "every")
        assert (grid[0.8, 5]["undecided"] > 0) == (name == "lazy")
    for own, other in zip(settings["lazy"]["methods"], settings["every"]["methods"], strict=True):
        assert {**own, "accuracy_at": {}} == {**other, "accuracy_at": {}}


def test_a_ledger_is_read_by_the_criterion_of_its_lazy_stream(tmp_path: Path) -> None:
    traces = dict(zip(METHODS, lazily(EVERY, 85, 5), strict=True))
    folder = store(tmp_path / "ledger", traces, lazy={"threshold": 0.85, "consecutive": 5})
    document = sample_efficiency(str(folder))
    assert document["criterion"] == {"measure": "accuracy", "threshold": 0.85, "consecutive": 5}
    with pytest.raises(UserError, match=OTHER):
        sample_efficiency(str(folder), threshold=0.8)


def test_a_report_has_no_learning_curves_of_them(lazy: Path) -> None:
    output = lazy.parent / "page.html"
    report(str(lazy), output=str(output))
    page = Page(output)
    assert "setting-1-reached" in page.content["figures"]
    assert "setting-1-learning_curves" not in page.content["figures"]
    assert "Evaluated lazily: there are no learning curves." in output.read_text()


def test_lazy_and_whole_traces_of_one_stream_join(lazy: Path, tmp_path: Path) -> None:
    part = write_run(tmp_path / "part", EVERY[:, :2], limit=LIMIT, methods=METHODS)
    joined = sample_efficiency([str(lazy), str(part)])
    assert joined["methods"] == {
        name: {**scores, **{key: joined["methods"][name][key] for key in ("accuracy_at", "evaluations")}}
        for name, scores in sample_efficiency(str(lazy))["methods"].items()
    }
    assert [value is not None for value in joined["methods"]["mine"]["accuracy_at"]["50"]] == [True] * 2 + [False] * 4
    json.dumps(joined, allow_nan=False)
