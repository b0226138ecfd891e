"""The suite from Python: the page and the notebook run as they stand, and mistakes are exceptions."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headstart import train
from headstart.output.errors import UsageError, UserError

ROOT = Path(train.__file__).parent


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Stand in for the checkout's folder, so that what is written goes elsewhere."""
    for name in ("configs", "train.py"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", ["jupyter"])
    yield tmp_path
    os.chdir(ROOT)


@pytest.mark.slow
def test_page_runs_as_it_stands(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), flags=re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "python.md", "exec"), names)
    written = json.loads((checkout / "runs" / "python" / "results.json").read_text())
    assert json.loads(json.dumps(names["results"])) == written
    assert names["again"]["criterion"]["threshold"] == 0.7


@pytest.mark.slow
def test_notebook_runs_as_it_stands(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notebook = json.loads((ROOT / "docs" / "notebooks" / "first_steps.ipynb").read_text())
    assert notebook["nbformat"] == 4
    assert all(cell["outputs"] == [] for cell in notebook["cells"] if cell["cell_type"] == "code")
    names: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), "first_steps.ipynb", "exec"), names)
    assert "data.batchsize: there is no such option" in capsys.readouterr().out
    assert len(names["results"]["methods"]["baseline"]["samples_to_criterion"]) == 5
    assert names["again"]["criterion"] == {"measure": "accuracy", "threshold": 0.7, "consecutive": 5}
    assert "headstart.modules.Replay" in names["methods"]


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"data.batch_size": None}, UsageError, "data.batch_size: expected a whole number"),
        ({"data.batch_size": [1]}, UsageError, "data.batch_size: expected a whole number"),
        ({"data.max_samples": 5000}, UserError, "data.max_samples: 5000 asked for"),
        (
            {"data.photos": "headstart.datamodules.CatsAndDogs", "data.photos.root": Path("nowhere")},
            UserError,
            "data.photos.root: ",
        ),
        ({"trainer.accelerator": "gpuu"}, UserError, "trainer.accelerator: "),
    ],
)
def test_mistake_is_an_exception(
    options: dict[str, Any], kind: type[UserError], message: str, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        train.compare("configs/demo.yaml", {"trainer.logger": False, **options})
    assert capsys.readouterr().err == ""
    assert not (checkout / "runs").exists()


def test_values_arrive_as_they_are(checkout: Path) -> None:
    options = {
        "trainer.logger": False,
        "trainer.default_root_dir": checkout / "run",
        "data.max_samples": 12,
        "data.orderings": 1,
        "data.photos.train_size": 20,
        "data.photos.validation_size": 10,
        "data.validation_size": None,
        "model.methods": {"mean": {"class_path": "headstart.modules.NearestClassMean"}},
        "criterion.threshold": 1.0,
    }
    results = train.compare(Path("configs/demo.yaml"), options)
    assert list(results["methods"]) == ["baseline", "mean"]
    assert results["protocol"]["validation_size"] == 10
    assert results["criterion"]["threshold"] == 1.0
