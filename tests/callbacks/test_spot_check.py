"""A comparison that measures anything first measures some of the traces that it reuses again."""

import importlib
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from headstart.callbacks import ComparisonRun, spot_check
from headstart.modules.comparison import Comparison
from headstart.output.errors import UserError
from headstart.store.ledger import Ledger
from headstart.tests.material.scripted_runs import Scripted, ScriptedRun

Script = Callable[..., ScriptedRun]
# Two methods in three orderings of 12 evaluations, of 20 samples each.
COUNTS = np.random.default_rng(0).integers(8, 16, (2, 3, 12))
FOURTH = np.concatenate([COUNTS, COUNTS[:, :1]], axis=1)


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the time limit of spot checks."""
    monkeypatch.setattr(spot_check, "SECONDS", np.inf)


@pytest.fixture
def fed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record how many orderings every batch of a method has."""
    fed: list[int] = []
    adapt = Scripted.adapt

    def counted(self: Scripted, inputs: Tensor, labels: Tensor) -> None:
        adapt(self, inputs, labels)
        fed.append(len(inputs))

    monkeypatch.setattr(Scripted, "adapt", counted)
    return fed


def checked(run: ScriptedRun) -> list[dict[str, Any]]:
    times: dict[str, Any] = json.loads((run.folder / "results.json").read_text())["times"]
    traces: list[dict[str, Any]] = times["spot_check"]
    return traces


def test_one_trace_of_every_method_is_measured_again(
    script: Script, fed: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    first = script(COUNTS, results=ComparisonRun())
    assert checked(first) == []
    assert fed == [3] * 24
    fed.clear()
    capsys.readouterr()
    second = script(FOURTH, results=ComparisonRun(), folder="more")
    assert fed == [1] * 48
    assert [(each["method"], each["evaluations"]) for each in checked(second)] == [("baseline", 12), ("method_0", 12)]
    assert len({each["ordering"] for each in checked(second)}) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "6 of 8 traces were in the ledger" in printed
    assert "; 2 of them were equal when measured again." in printed


def test_a_run_that_measures_nothing_checks_nothing(script: Script, fed: list[int]) -> None:
    script(COUNTS, results=ComparisonRun())
    fed.clear()
    assert checked(script(COUNTS, results=ComparisonRun(), folder="again")) == []
    assert checked(script(COUNTS, results=ComparisonRun(recompute=True), folder="anew")) == []
    assert fed == [3] * 24


def test_methods_that_are_only_checked_hold_nothing_afterwards(script: Script) -> None:
    script(COUNTS[:1], results=ComparisonRun())
    methods = [Scripted(part, 1, None) for part in COUNTS]
    run = script(COUNTS, results=ComparisonRun(), methods=methods, folder="more")
    assert [each["method"] for each in checked(run)] == ["baseline"]
    assert [hasattr(method, "batches") for method in methods] == [False, True]


@pytest.mark.slow
@pytest.mark.parametrize("evaluation", ["every", "lazy"])
def test_a_stale_trace_is_an_error(script: Script, evaluation: str, tmp_path: Path) -> None:
    counts = np.where(COUNTS > 9, 16, 15)
    before = script(counts, results=ComparisonRun(), evaluation=evaluation, consecutive=2)
    folder = before.criterion.traces.ledger.folder
    keys = [key for row in before.criterion.traces.keys for key in row]
    with Ledger(folder) as ledger:
        stored = {key: trace.correct.tolist() for key, trace in ledger.read(keys).items()}

    more = np.concatenate([counts, counts[:, :1]], axis=1)
    more[1] = np.where(more[1] == 16, 1, 16)
    with pytest.raises(UserError) as error:
        script(more, results=ComparisonRun(), evaluation=evaluation, consecutive=2, folder="more")
    ordering = int(str(error.value).partition("in ordering ")[2].partition(" ")[0])
    then, now = before.correct[1, ordering - 3], more[1, ordering - 3]
    # Lazy evaluation begins with the last of the evaluations that must pass.
    first = 1 if evaluation == "lazy" else 0
    assert str(error.value) == (
        f"results.ledger: in {str(folder)!r} the trace of method_0 in ordering {ordering} differs first at evaluation "
        f"{first + 1} ({first + 1} samples): {then[first]} correct predictions are stored, measured again there are "
        f"{now[first]}. Something changed that no digest covers: give --results.recompute=true, or another folder"
    )
    assert not (tmp_path / "more" / "results.json").exists()
    with Ledger(folder) as ledger:
        assert {key: trace.correct.tolist() for key, trace in ledger.read(keys).items()} == stored
    again = script(more, results=ComparisonRun(recompute=True), evaluation=evaluation, consecutive=2, folder="more")
    assert again.results.document["complete"]


@pytest.mark.parametrize(("evaluations", "by", "is_rounding"), [([5], 1, True), ([5], 2, False), ([5, 6], 1, False)])
def test_rounding_is_no_difference(
    script: Script, monkeypatch: pytest.MonkeyPatch, evaluations: list[int], by: int, is_rounding: bool
) -> None:
    script(COUNTS, results=ComparisonRun())
    monkeypatch.setattr(spot_check, "_one_of_each", lambda reused, _: [reused & (np.arange(4) == 1)])
    counts = FOURTH.copy()
    counts[1, 1, evaluations] += by
    if is_rounding:
        assert len(checked(script(counts, results=ComparisonRun(), folder="more"))) == 2
    else:
        with pytest.raises(UserError, match=r"ordering 4 differs first at evaluation 6 .6 samples"):
            script(counts, results=ComparisonRun(), folder="more")


@pytest.mark.slow
@pytest.mark.parametrize("evaluation", ["every", "lazy"])
def test_without_time_one_evaluation_is_compared(
    script: Script, evaluation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spot_check, "SECONDS", -1.0)
    options: dict[str, Any] = {"evaluation": evaluation, "consecutive": 3}
    script(COUNTS, results=ComparisonRun(), **options)
    run = script(FOURTH, results=ComparisonRun(), folder="more", **options)
    assert [each["evaluations"] for each in checked(run)] == [1, 1]
    # The repeated measurement is no part of the results.
    whole = script(FOURTH, results=ComparisonRun(recompute=True), folder="whole", **options)
    assert run.correct.tolist() == whole.correct.tolist()


def test_methods_with_traces_in_different_orderings_are_all_checked() -> None:
    generator = np.random.default_rng(1)
    for _ in range(50):
        reused = generator.random((5, 4)) < 0.3
        passes = list(spot_check._one_of_each(reused, np.random.default_rng(2)))
        total = sum(passes, np.zeros_like(reused, dtype=int))
        assert np.array_equal(total.sum(1), reused.any(1))
        assert not (total & ~reused).any()
        assert all(chosen.any(0).sum() == 1 for chosen in passes)
        again = list(spot_check._one_of_each(reused, np.random.default_rng(2)))
        assert np.array_equal(passes, again)


class Drawing(Scripted):
    """Draws for all of its orderings from the global generator."""

    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        super().adapt(inputs, labels)
        self.counts = torch.randint(0, 16, self.counts.shape)


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [4, 1])
def test_methods_that_draw_for_orderings_side_by_side_are_not_compared(
    script: Script, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Comparison, "orderings_at_once", staticmethod(lambda start, methods: at_once))
    options: dict[str, Any] = {"methods": [Scripted(COUNTS[0], 1, None), Drawing(COUNTS[1], 1, None)]}
    script(COUNTS, results=ComparisonRun(), **options)
    options = {"methods": [Scripted(FOURTH[0], 1, None), Drawing(FOURTH[1], 1, None)]}
    run = script(FOURTH, results=ComparisonRun(), folder="more", **options)
    assert [each["method"] for each in checked(run)] == ["baseline", "method_0"][: 1 if at_once > 1 else 2]


MINE = """\
from pathlib import Path
from headstart.modules import NearestClassMean

class Mine(NearestClassMean):
    def forward(self, inputs):
        name = "".join(["sc", "ale"])
        return super().forward(inputs) * float((Path(__file__).parent / name).read_text())
"""


@pytest.mark.slow
def test_a_file_with_a_computed_name_that_changes_is_noticed(
    fit: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("HEADSTART_LEDGER", str(tmp_path / "ledger"))
    (tmp_path / "own_scaled.py").write_text(MINE)
    (tmp_path / "scale").write_text("1")
    importlib.invalidate_caches()
    options = ("--model.methods={mine: own_scaled.Mine}", "--criterion.threshold=1.0")
    try:
        fit(*options, folder="two")
        run = fit(*options, "--data.orderings=3", folder="three")
        times = json.loads((run / "results.json").read_text())["times"]
        assert [each["method"] for each in times["spot_check"]] == ["baseline", "mine"]

        (tmp_path / "scale").write_text("-1")
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            fit(*options, "--data.orderings=4", folder="four")
        assert ended.value.code == 1
        (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error:")]
        assert "the trace of mine in ordering" in line
        assert re.search(r"differs first at evaluation (\d+) \(\1 samples\): ", line)
        assert not (tmp_path / "four" / "results.json").exists()
    finally:
        sys.modules.pop("own_scaled", None)
