"""Scores that are there are not computed again, and what they depend on is all that finds them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.datamodules.row_computation import RowComputer
from headstart.evaluation.sources import transferability as command
from headstart.evaluation.sources.scores import Score, score_source
from headstart.evaluation.sources.stored_scores import StoredScores
from headstart.metrics.transferability.baselines import SourceFacts
from headstart.metrics.transferability.inputs import Inputs

METRICS = "--metrics=[log_me, leep, ncti, {gbc: {pca: 8}}, num_classes]"
LABELS = np.arange(12) % 2
PARTS = np.arange(12) % 3


def make(**changes: Any) -> Inputs:
    features = np.random.default_rng(0).standard_normal((12, 4))
    return Inputs(**{"features": features, "labels": LABELS, "seed": 1, **changes})


def test_a_second_command_computes_what_is_missing(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[set[str]] = []

    def note(metrics: Any, *rest: Any) -> Any:
        computed.append(set(metrics))
        return score_source(metrics, *rest)

    monkeypatch.setattr(command, "score_source", note)
    first = run(METRICS, "--resamples=3")
    assert computed == 2 * [{"log_me", "leep", "ncti", "gbc(pca=8)", "num_classes"}]
    computed.clear()
    with monkeypatch.context() as patch:
        patch.setattr(RowComputer, "compute", lambda *_: pytest.fail("a row is computed again"))
        again = run(METRICS, "--resamples=3", output="again")
    assert computed == []
    assert (again.rows, again.cells) == (first.rows, first.cells)
    run("--metrics=[log_me, {gbc: {pca: 7}}]", "--resamples=3", output="more")
    assert computed == 2 * [{"gbc(pca=7)"}]
    computed.clear()
    run("--metrics=[log_me]", "--resamples=4", output="parts")
    run("--metrics=[log_me]", "--resamples=3", "--seed=1", output="seed")
    assert computed == 4 * [{"log_me"}]
    computed.clear()
    # Of a user's own function it is not known what it depends on.
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_for_storing.py").write_text("def own(features):\n    return float(features.mean())\n")
    for output in ("own", "own again"):
        run("--metrics=[own_for_storing.own]", "--resamples=0", output=output)
    assert computed == 4 * [{"own_for_storing.own"}]


def test_scores_come_back_as_they_are(tmp_path: Path) -> None:
    stored, inputs = StoredScores(tmp_path), make()
    scores = {
        "log_me": Score(0.1 + 0.2, 1.5, left_out=(0.1, 1 / 3), left_out_seconds=2.0),
        "ncti": Score(None, 0.5, terms=(1.0, 2.0, 3.0), left_out_terms=((1.0, 2.0, 3.0), (4.0, 5.0, 6.0))),
        "leep": Score(None, 0.0, "the model has no source head"),
        "mine.own": Score(1.0, 0.0),
    }
    stored.keep(stored.identity(inputs, PARTS), scores)
    del scores["mine.own"]
    assert stored.find(stored.identity(make(), PARTS), [*scores, "mine.own", "h_score"]) == scores


def test_whatever_they_depend_on_finds_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = StoredScores(tmp_path)
    identity = stored.identity(make(), PARTS)
    changed = make().features.copy()
    changed[3, 2] = np.nextafter(changed[3, 2], 1)
    changes: list[dict[str, Any]] = [
        *({"features": each} for each in (changed, changed.astype(np.float32), make().features[:, :3])),
        *({"labels": LABELS[::-1]}, {"logits": np.zeros((12, 3))}, {"seed": 2}, {"facts": SourceFacts(10, 0.5)}),
    ]
    others = [stored.identity(make(**change), PARTS) for change in changes]
    others += [stored.identity(make(), PARTS[::-1]), {**identity, "code": "edited"}]
    assert len({repr(each) for each in [identity, *others]}) == 10
    stored.keep(identity, {"log_me": Score(1.0, 0.0)})
    assert [stored.find(each, ["log_me"]) for each in others] == [{}] * 9
    assert stored.find(identity, ["log_me(a=1)"]) == {}


def test_scores_that_cannot_be_read_or_written_are_computed(tmp_path: Path) -> None:
    stored = StoredScores(tmp_path)
    identity = stored.identity(make(), PARTS)
    stored.keep(identity, {"log_me": Score(1.0, 0.0)})
    (file,) = (tmp_path / "scores").rglob("*.json")
    before = file.read_text()
    for text in ("", "{}", before.replace("1.0", "1.5")):
        file.write_text(text)
        assert stored.find(identity, ["log_me"]) == {}
    stored.keep(identity, {"log_me": replace(Score(1.0, 0.0), value=2.0)})
    assert stored.find(identity, ["log_me"])["log_me"].value == 2
    (tmp_path / "file").touch()
    full = StoredScores(tmp_path / "file")
    full.keep(identity, {"log_me": Score(1.0, 0.0)})
    assert full.find(identity, ["log_me"]) == {}
