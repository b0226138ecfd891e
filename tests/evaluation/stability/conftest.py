"""A table of scores, and studies without figures."""

from pathlib import Path

import pytest

from headstart.evaluation.stability import stability as command
from headstart.tests.material.score_tables import SCORES, number, scaled_table, write_table


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what takes most of the time."""
    monkeypatch.setattr(command, "plot_study", lambda *args: {})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_table(tmp_path / "table.csv", scaled_table(number("t", 4), SCORES))
