"""The suite from Python: the page and the notebook run as they stand, and mistakes are exceptions."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import headstart
from headstart.output.errors import UsageError, UserError
from headstart.tests.material.root import ROOT, require_checkout


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Begin in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", ["jupyter"])
    return tmp_path


@pytest.mark.slow
def test_page_runs_as_it_stands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    require_checkout()
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), flags=re.DOTALL)
    assert len(blocks) == 6
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "python.md", "exec"), names)
    written = json.loads((folder / "runs" / "python" / "results.json").read_text())
    assert json.loads(json.dumps(names["results"])) == written
    assert names["again"]["criterion"]["threshold"] == 0.7
    assert float(names["metric"].compute()) == pytest.approx(names["log_me"](names["rows"], names["labels"]))


@pytest.mark.slow
def test_notebook_runs_in_a_kernel(folder: Path) -> None:
    require_checkout()
    notebook = nbformat.read(ROOT / "docs" / "notebooks" / "first_steps.ipynb", as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] for cell in cells)
    NotebookClient(notebook, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    printed = ["".join(each.get("text", "") or each.data["text/plain"] for each in cell.outputs) for cell in cells]
    assert re.search(r"recursive_least_squares +\[(\d+|None)(, (\d+|None)){4}\]", printed[1])
    assert printed[3].splitlines()[-1] == "(200, 1280)"
    assert float(printed[4]) > 0.7
    assert "data.batchsize: there is no such option" in printed[6]
    assert "LoRA" in printed[7]
    assert (folder / "runs" / "first_steps" / "results.json").is_file()


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"data.batch_size": None}, UsageError, "data.batch_size: expected a whole number"),
        ({"data.batch_size": [1]}, UsageError, "data.batch_size: expected a whole number"),
        ({"data.max_samples": 5000}, UserError, "data.max_samples: 5000 requested"),
        (
            {"data.photos": "headstart.datamodules.CatsAndDogs", "data.photos.root": Path("nowhere")},
            UserError,
            "data.photos.root: ",
        ),
        ({"trainer.accelerator": "gpuu"}, UserError, "trainer.accelerator: "),
    ],
)
def test_mistake_is_an_exception(
    options: dict[str, Any], kind: type[UserError], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        headstart.compare("demo.yaml", {"trainer.logger": False, **options})
    assert capsys.readouterr().err == ""
    assert not (folder / "runs").exists()


def test_values_arrive_as_they_are(folder: Path) -> None:
    options = {
        "trainer.logger": False,
        "trainer.default_root_dir": folder / "run",
        "data.max_samples": 12,
        "data.orderings": 1,
        "data.photos.train_size": 20,
        "data.photos.validation_size": 10,
        "data.validation_size": None,
        "model.methods": {"mean": {"class_path": "headstart.modules.NearestClassMean"}},
        "criterion.threshold": 1.0,
    }
    results = headstart.compare(Path("demo.yaml"), options)
    assert list(results["methods"]) == ["baseline", "mean"]
    assert results["protocol"]["validation_size"] == 10
    assert results["criterion"]["threshold"] == 1.0
