"""Lists name the values that options take."""

import json
from pathlib import Path
from typing import get_args

import pytest
import yaml

from headstart import datamodules, evaluate, modules
from headstart.datamodules import PhotoSource
from headstart.evaluation.listing import Kind, list_choices
from headstart.metrics.similarity.catalogue import SIMILARITY_MEASURES
from headstart.metrics.transferability.catalogue import METRICS

ROOT = Path(evaluate.__file__).parent


def test_methods_are_all_that_is_exported() -> None:
    classes = [getattr(modules, name) for name in dir(modules)]
    bases = (modules.Method, modules.FineTuning)
    methods = {
        each.__name__
        for each in classes
        if isinstance(each, type) and issubclass(each, modules.Method) and each not in bases
    }
    listed = list_choices("methods")
    assert {line.partition(":")[0] for line in listed.values()} == methods
    # Both names of one class.
    for name, line in listed.items():
        assert name.replace("_", "") == line.partition(":")[0].lower()


def test_datasets_are_all_that_is_exported() -> None:
    classes = {name: getattr(datamodules, name) for name in dir(datamodules)}
    sources = {
        name: each
        for name, each in classes.items()
        if isinstance(each, type) and issubclass(each, PhotoSource) and each is not PhotoSource
    }
    listed = list_choices("datasets")
    assert set(listed) == set(sources)
    assert all(line == (sources[name].__doc__ or "").splitlines()[0] for name, line in listed.items())


def test_metrics_and_measures_are_those_of_the_catalogues() -> None:
    assert list(list_choices("metrics")) == list(METRICS)
    assert list(list_choices("measures")) == list(SIMILARITY_MEASURES)


def test_models_are_those_of_the_registry(tmp_path: Path) -> None:
    shipped = json.loads((ROOT / "configs" / "model_registry.json").read_text())["models"]
    assert list(list_choices("models")) == [entry["model_name"] for entry in shipped]
    (tmp_path / "one.json").write_text(json.dumps({"models": [shipped[3] | {"weights": None}]}))
    (line,) = list_choices("models", registry=str(tmp_path / "one.json")).values()
    assert "random weights" in line


def test_configs_are_files_with_a_first_sentence() -> None:
    listed = list_choices("configs")
    assert all(yaml.safe_load((ROOT / path).read_text()) for path in listed)
    assert listed["configs/demo.yaml"] == "A first look: no network, account or GPU."
    assert listed["configs/data/cats_and_dogs.yaml"].endswith("pre-trained on ImageNet: both are downloaded once.")
    assert listed["configs/evaluation/demo_sources.yaml"].endswith("; no network, account or GPU")


def test_everything_listed_has_lines_of_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    for kind in get_args(Kind):
        choices = list_choices(kind)
        capsys.readouterr()
        evaluate.main(["list", kind])
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= 80
        start = max(map(len, choices)) + 2
        assert [line[:start].rstrip() for line in lines if line[0] != " "] == list(choices)
        assert " ".join(line[start:] for line in lines) == " ".join(choices.values())
        assert min(map(len, choices.values())) > 5
