"""Leaderboards of what lies in a folder, and the traces of three methods."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.evaluation.leaderboard.leaderboard import leaderboard
from headstart.output.errors import UserError

GENERATOR = np.random.default_rng(0)
SLOW, FAST = (np.sort(GENERATOR.integers(low, low + 15, 20)) for low in (30, 15))
# Between the two, and as the fast one but for noise.
CLOSE = FAST + GENERATOR.integers(-2, 3, 20)


def rank(folder: Path, **options: Any) -> dict[str, Any]:
    """Rank what lies in a folder, and check that no number of it is lost in the file."""
    output = folder.parent / "out"
    document = leaderboard(str(folder), output=str(output), overwrite=True, **options)
    assert json.loads((output / "leaderboard.json").read_text()) == json.loads(json.dumps(document))
    return document


def refusal(folder: Path, **options: Any) -> str:
    with pytest.raises(UserError) as caught:
        leaderboard(str(folder), output=str(folder.parent / "out"), **options)
    assert not (folder.parent / "out").exists()
    assert "\n" not in str(caught.value)
    return str(caught.value)
