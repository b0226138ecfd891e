"""A comparison is scored from the ledger alone, or from it and runs, as from the run of it all."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.evaluation.sample_efficiency import sample_efficiency
from headstart.output.errors import UserError
from headstart.store.ledger import Ledger
from headstart.store.ledger_file import Trace, TraceKey
from headstart.tests.material.runs import seal

Fit = Callable[..., Path]
STREAM: dict[str, Any] = {
    "batch_size": 2,
    "evaluate_every": 1,
    "validation_size": 100,
    "weights_sha256": "0" * 64,
    "network": {"library": "timm", "model": "resnet18"},
}
NAMES = {"dataset": "pets", "backbone": "resnet18", "weights": "DEFAULT"}
STEPS, ADAM, SGD, MEAN = (
    {"class": f"headstart.modules.{kind}", "hyperparameters": hyperparameters, "digests": {"modules": "1" * 64}}
    for kind, hyperparameters in (
        ("Steps", {"rate": 0.1, "optimizer": {"class_path": "Adam", "init_args": {"lr": 1.0, "eps": 0}}}),
        ("Steps", {"rate": 0.2, "optimizer": {"class_path": "Adam", "init_args": {"lr": 1.0, "eps": 0}}}),
        ("Steps", {"rate": 0.1, "optimizer": {"class_path": "SGD", "init_args": {"lr": 1.0}}}),
        ("Mean", {}),
    )
)
CORRECT = {"slow": [50, 60, 70, 80, 80, 80], "fast": [80, 80, 80], "never": [50, 60, 70, 80, 60, 70]}


class Filling:
    """A ledger that is filled by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(
        self,
        method: dict[str, Any],
        counts: list[int],
        name: str | None = None,
        orderings: range = range(2),
        **changes: Any,
    ) -> None:
        with Ledger(self.folder) as ledger:
            stream = ledger.record({**STREAM, **changes}, description=NAMES)
            digest = ledger.record(method, description=None if name is None else {"name": name})
            trace = Trace(np.array(counts))
            ledger.write({TraceKey(stream, digest, ordering): trace for ordering in orderings})

    def score(self, **options: Any) -> dict[str, Any]:
        return sample_efficiency(str(self.folder), **{"consecutive": 2, **options})

    def refusal(self, **options: Any) -> str:
        with pytest.raises(UserError) as caught:
            self.score(**options)
        assert "\n" not in str(caught.value)
        return str(caught.value)


@pytest.fixture
def filling(tmp_path: Path) -> Filling:
    filling = Filling(tmp_path / "stored")
    filling.add(STEPS, CORRECT["slow"], "baseline")
    filling.add(MEAN, CORRECT["fast"], "mean")
    return filling


def samples_of(document: dict[str, Any]) -> dict[str, list[int | None]]:
    return {name: scores["samples_to_criterion"] for name, scores in document["methods"].items()}


def test_scores(filling: Filling, capsys: pytest.CaptureFixture[str]) -> None:
    document = filling.score()
    assert samples_of(document) == {"baseline": [10, 10], "mean": [4, 4]}
    assert document["criterion"] == {"measure": "accuracy", "threshold": 0.8, "consecutive": 2}
    assert document["restricted_at"] == 12
    assert document["methods"]["mean"]["key"] == MEAN
    assert "pets, resnet18 (DEFAULT), 2 orderings, batch size 2" in capsys.readouterr().out
    assert samples_of(filling.score(threshold=0.7, consecutive=1)) == {"baseline": [6, 6], "mean": [2, 2]}


def test_methods_of_one_name_are_named_by_what_differs(filling: Filling) -> None:
    filling.add(ADAM, CORRECT["slow"], "baseline")
    filling.add(SGD, CORRECT["slow"], "baseline")
    filling.add({**MEAN, "digests": {"mine": "2" * 64}}, CORRECT["fast"])
    steps = [f"baseline (optimizer {kind}, rate {rate})" for rate, kind in ((0.1, "Adam"), (0.2, "Adam"), (0.1, "SGD"))]
    assert "baseline: 'baseline' is 3 methods; give one of " + ", ".join(map(repr, steps)) in filling.refusal()
    document = filling.score(baseline=steps[2])
    assert list(document["methods"]) == [steps[2], steps[0], "mean", steps[1], "Mean"]
    assert list(document["comparisons"]) == [steps[0], "mean", steps[1], "Mean"]
    assert list(filling.score(baseline=steps[1], methods=["mean"])["methods"]) == [steps[1], "mean"]


def test_a_method_is_found_by_its_class(filling: Filling) -> None:
    document = filling.score(baseline="headstart.modules.Mean", methods=["Steps"])
    assert list(document["methods"]) == ["mean", "baseline"]
    assert "methods: 'Stepss' is none of 'baseline', 'mean'" in filling.refusal(methods=["Stepss"])


def test_streams_that_differ_are_chosen_by_where(tmp_path: Path) -> None:
    changes: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
        ({"train_photos_sha256": "3" * 64}, "train_photos_sha256 (None, 33333333)", {"train_photos_sha256": "3333"}),
        ({"network": {"model": "vit"}}, "network.model (resnet18, vit)", {"network": {"model": "vit"}}),
    ]
    for number, (change, named, where) in enumerate(changes):
        filling = Filling(tmp_path / str(number))
        filling.add(STEPS, CORRECT["slow"], "baseline")
        filling.add(STEPS, CORRECT["fast"], "baseline", **change)
        message = filling.refusal()
        assert message.startswith("runs: 2 settings, which differ in ")
        assert named in message
        assert list(filling.score(where=where)["methods"]) == ["baseline"]
    assert filling.refusal(where={"sead": 0}).startswith("where: sead is none of ")


def test_the_last_batch_of_a_limit_that_they_do_not_divide(tmp_path: Path) -> None:
    filling = Filling(tmp_path / "stored")
    filling.add(STEPS, CORRECT["slow"], "baseline", max_samples=11)
    assert samples_of(filling.score(consecutive=3)) == {"baseline": [11, 11]}


def test_a_name_that_runs_gave_to_another_method(fit: Fit, tmp_path: Path) -> None:
    run, stored = fit(folder="run"), os.environ["HEADSTART_LEDGER"]
    results = json.loads((run / "results.json").read_text())
    results["methods"]["mean"]["key"]["code"] = {"edited": "4" * 64}
    seal(run, results)
    names = list(sample_efficiency([str(run), stored])["methods"])
    assert names[:2] == ["baseline", "mean"]
    assert names[2].startswith("mean (")
