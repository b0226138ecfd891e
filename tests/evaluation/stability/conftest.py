"""A table of scores."""

from pathlib import Path

import pytest

from headstart.tests.material.score_tables import SCORES, number, scaled_table, write_table


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_table(tmp_path / "table.csv", scaled_table(number("t", 4), SCORES))
