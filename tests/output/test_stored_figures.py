"""Every figure is compared with a stored one; `make figures` stores all of them again, to be looked at."""

import ast
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import pytest
from matplotlib.figure import Figure
from matplotlib.testing.compare import compare_images

from headstart.output import figures
from headstart.tests.material.root import ROOT

STORED = Path(__file__).parent / "stored_figures"
# Dots per inch, so that stored figures are small; root mean square of the differences, of 255: a letter is about 1.
DPI, TOLERANCE = 50, 0.5
FOLDERS = ("callbacks", "contract", "datamodules", "evaluation", "metrics", "modules", "output", "portal", "scripts")


class Drawn(NamedTuple):
    """Files of the figures that were drawn, by name, and the functions that made a figure, by file and name."""

    files: dict[str, Path]
    functions: set[tuple[str, str]]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    from headstart.tests.material.sample_figures import sample_figures

    folder, functions, begin = tmp_path_factory.mktemp("figures"), set(), Figure.__init__

    def record(self: Figure, *args: Any, **options: Any) -> None:
        code = sys._getframe(1).f_code
        functions.add((Path(code.co_filename).name, code.co_name))
        begin(self, *args, **options)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Figure, "__init__", record)
        patched.setattr(figures, "DPI", DPI)
        files = {}
        for name, figure in sample_figures(folder):
            files[name] = (STORED if os.environ.get("STORE_FIGURES") else folder) / f"{name}.png"
            figures.save(figure, files[name])
    return Drawn(files, functions)


@pytest.mark.slow
def test_figures_are_the_stored_ones(drawn: Drawn) -> None:
    pinned = ROOT / "constraints.txt"
    if not pinned.is_file() or f"matplotlib=={matplotlib.__version__}\n" not in pinned.read_text():
        pytest.skip("another version of matplotlib draws texts differently")
    assert sorted(drawn.files) == sorted(path.stem for path in STORED.glob("*.png"))
    compared = [compare_images(str(STORED / path.name), str(path), TOLERANCE) for path in drawn.files.values()]
    assert not [difference for difference in compared if difference]


def test_every_function_that_makes_a_figure_has_a_stored_one(drawn: Drawn) -> None:
    written = set()
    for path in (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        source = path.read_text()
        if "matplotlib" in source:
            functions = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef))
            written |= {(path.name, node.name) for node in functions if makes_figure(node)}
    assert len(written) > 5
    assert written - drawn.functions == set()


def makes_figure(function: ast.FunctionDef) -> bool:
    calls = (ast.unparse(node.func) for node in ast.walk(function) if isinstance(node, ast.Call))
    return any(name.split(".")[-1] == "Figure" for name in calls)
