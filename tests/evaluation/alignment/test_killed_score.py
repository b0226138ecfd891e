"""A score is in its place, complete, before it is in the log, whenever the command was killed."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headstart.evaluation.alignment import score_files
from headstart.evaluation.alignment.score_files import result_names, write_score
from headstart.metrics.similarity.catalogue import DEFAULT_MEASURE
from headstart.output.results_folder import ResultsFolder

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked")


def write(folder: Path, log: Path, value: float = 0.5) -> list[Path]:
    pairwise = {"names": ["a", "b"], "biased": [[1.0, value], [value, 1.0]], "debiased": None}
    document: dict[str, Any] = {
        "contract_version": "1.0",
        "team": "blue",
        "score": value,
        "n_models": 2,
        "n_stimuli": 9,
        "mean_cka_biased": value,
        "mean_cka_debiased": None,
        "pairwise": pairwise,
        "ci95": {"score": [0.0, 1.0]},
        "extraction": {},
        "digests": {},
    }
    names = result_names(DEFAULT_MEASURE, True, ["png"], False)
    return write_score(document, ResultsFolder(str(folder), names), log, {})


def killed(step: int, work: Callable[[], object]) -> bool:
    """Do some work in a process that is killed before its file operation of that number; tell whether there was one."""
    process = os.fork()
    if process:
        return os.WIFSIGNALED(os.waitpid(process, 0)[1])
    left = [step]

    def counted(function: Any) -> Any:
        def call(*args: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **named)

        return call

    try:
        for owner, name in [(Path, "replace"), (Path, "unlink"), (os, "fsync")]:
            setattr(owner, name, counted(getattr(owner, name)))
        work()
    finally:
        os._exit(0)


def records(log: Path) -> list[dict[str, Any]]:
    path = log / "scores.jsonl"
    text = path.read_text() if path.exists() else ""
    assert text == "" or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(autouse=True)
def blank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_files, "_plot_heatmap", lambda document, path, figure_format: path.write_bytes(b"png"))


@pytest.mark.parametrize("before", [False, True])
def test_same_command_again(tmp_path: Path, before: bool) -> None:
    for step in range(100):
        out, log = tmp_path / f"out{step}", tmp_path / f"log{step}"
        if before:
            write(out, log, 0.25)
        ended = killed(step, lambda out=out, log=log: write(out, log))  # type: ignore[misc]
        if 0.5 in [record["score"] for record in records(log)]:
            assert json.loads((out / "score.json").read_text())["score"] == 0.5
        if not ended:
            break

        write(out, log)
        assert [record["score"] for record in records(log)][-1] == 0.5
        assert json.loads((out / "score.json").read_text())["score"] == 0.5
        assert sorted(path.name for path in out.iterdir()) == ["heatmap.png", "score.json"]
        assert {path.name for path in log.iterdir()} <= {"scores.jsonl", "scores.jsonl.lock"}
    assert step > 4
