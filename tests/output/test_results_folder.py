"""Results folders: their options in commands, and the files that they write."""

import json
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from headstart.output.results_folder import FigureFormat, ResultsFolder

NAMES = ("result.json", "table.csv")


@pytest.mark.parametrize("formats", [["png"], ["png", "pdf", "svg"], []])
def test_files_are_written_in_the_chosen_formats(tmp_path: Path, formats: list[FigureFormat]) -> None:
    results = ResultsFolder("runs/unused", NAMES, str(tmp_path / "out"))
    rows: list[list[Any]] = [["a", 0.1], ["b", None]]
    results.write({"a": 1}, {"table": (["name", "value"], rows)}, {"report.md": "é\n"}, {"plot": Figure()}, formats)
    expected = [*(f"plot.{form}" for form in formats), "table.csv", "report.md", "result.json"]
    assert [path.name for path in results.written] == expected
    assert set(results.written) == set((tmp_path / "out").iterdir())
    assert json.loads((tmp_path / "out" / "result.json").read_text()) == {"a": 1}
    assert (tmp_path / "out" / "table.csv").read_text() == "name,value\na,0.1\nb,\n"
