"""A ledger of three methods."""

from pathlib import Path

import pytest

from headstart.tests.material.leaderboards import CLOSE, FAST, SLOW
from headstart.tests.material.ledgers import reach, store


@pytest.fixture
def three(tmp_path: Path) -> Path:
    traces = {"baseline": reach(SLOW, 60), "fast": reach(FAST, 60), "close": reach(CLOSE, 60)}
    return store(tmp_path / "stored", traces)
