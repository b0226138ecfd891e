"""The suite from Python: notebooks run as they stand, results are those of the files, and mistakes are exceptions."""

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

require_checkout()

NOTEBOOKS = sorted(ROOT.glob("docs/notebooks/*.ipynb"))
NAMES = [path.stem for path in NOTEBOOKS]
# Cells that install the package are not run here.
NOT_RUN = "skip-execution"
LARGEST = 300_000
# What each notebook prints: counts in most orderings, accuracies far above chance, one line for an error.
PRINTED = {
    "first_steps": [
        r"^recursive_least_squares +\[(\d+, ){4}\d+\]$",
        r"^\(400, 1280\)$",
        r"^embedded .*accuracy [789]\d\.\d%$",
        r"^data.batchsize: there is no such option",
    ],
    "hosted": [r"^drawn_objects +accuracy [789]\d\.\d%$"],
    "own_photos": [r"^chosen: \w+ on mobilenet_v2", r"^accuracy on 20 new photos: ([789]\d|100)%$"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Begin in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", ["jupyter"])
    return tmp_path


@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_notebook_is_stored_with_its_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = [
        cell for cell in notebook.cells if cell.cell_type == "code" and NOT_RUN not in cell.metadata.get("tags", [])
    ]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert all(output.output_type != "error" for cell in cells for output in cell.outputs)
    assert path.stat().st_size < LARGEST
    assert not re.search(r"/(home|root|tmp|work|Users|mnt|var)/", path.read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)
def test_notebook_runs_in_a_kernel(path: Path, folder: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, kernel_name="python3", skip_cells_with_tag=NOT_RUN, resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    printed = "\n".join(
        each.get("text", "") or each.data["text/plain"]
        for cell in notebook.cells
        if cell.cell_type == "code"
        for each in cell.outputs
    )
    for pattern in PRINTED[path.stem]:
        assert re.search(pattern, printed, re.MULTILINE), pattern


def test_mistake_is_an_exception(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pets = {"data.photos": "headstart.datamodules.CatsAndDogs", "data.photos.root": Path("nowhere")}
    mistakes: list[tuple[dict[str, Any], type[UserError], str]] = [
        ({"data.batch_size": [1]}, UsageError, "data.batch_size: expected a whole number"),
        (pets, UserError, "data.photos.root: "),
        ({"trainer.accelerator": "gpuu"}, UserError, "trainer.accelerator: "),
    ]
    for options, kind, message in mistakes:
        with pytest.raises(kind, match=re.escape(message)):
            headstart.compare("demo.yaml", {"trainer.logger": False, **options})
    assert capsys.readouterr().err == ""
    assert not (folder / "runs").exists()
