"""The grid of criteria is scoring again under each of them; what is undecided is said."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from headstart.evaluation.sample_efficiency import sample_efficiency
from headstart.tests.material.leaderboards import rank
from headstart.tests.material.ledgers import reach, store

GENERATOR = np.random.default_rng(0)


@pytest.fixture
def noisy(tmp_path: Path) -> Path:
    """Traces that rise, some faster, none of them the same; those of one method are stopped early."""
    rise = np.array([[3.0], [5.0], [8.0], [12.0]])[..., None] * GENERATOR.uniform(0.7, 1.3, (4, 12, 1))
    counts = GENERATOR.binomial(100, 0.97 - 0.45 * np.exp(-np.arange(80) / rise))
    traces = dict(zip(("baseline", "one", "two"), counts, strict=False)) | {"stopped": counts[3][:, :40]}
    return store(tmp_path / "stored", traces)


def grid(folder: Path) -> list[dict[str, Any]]:
    [setting] = rank(folder)["sensitivity"]["settings"]
    assert len(setting["grid"]) == 24
    cells: list[dict[str, Any]] = setting["grid"]
    return cells


def test_cells_are_scoring_again(noisy: Path) -> None:
    cells = grid(noisy)
    [own] = [cell for cell in cells if (cell["threshold"], cell["consecutive"]) == (0.8, 10)]
    assert own["tau"] == pytest.approx(1)
    for cell in cells:
        again = sample_efficiency(str(noisy), threshold=cell["threshold"], consecutive=cell["consecutive"])
        assert cell["restricted_at"] == again["restricted_at"]
        means = {name: scores["restricted_mean"] for name, scores in again["methods"].items()}
        if cell["order"]:
            assert cell["restricted_means"] == pytest.approx(means)
            assert [means[name] for name in cell["order"]] == sorted(means.values())
            pairs = [(own["restricted_means"][name], mean) for name, mean in means.items()]
            assert cell["tau"] == pytest.approx(stats.kendalltau(*np.transpose(pairs)).statistic)
        else:
            # No trace has met it before the first undecided trace ends.
            assert set(means.values()) == {again["restricted_at"]}
            assert set(cell["restricted_means"].values()) == {None}


def test_undecided_traces_are_counted(tmp_path: Path) -> None:
    # Both reach 90 %: the trace that was stopped leaves 95 % undecided.
    store(tmp_path / "stored", {"baseline": reach([20, 30], 60), "stopped": reach([12, 14], 25)})
    cells = {(cell["threshold"], cell["consecutive"]): cell for cell in grid(tmp_path / "stored")}
    assert (cells[0.9, 10]["undecided"], cells[0.9, 10]["restricted_at"]) == (0, 60)
    assert (cells[0.95, 10]["undecided"], cells[0.95, 10]["restricted_at"]) == (2, 25)
    assert cells[0.95, 10]["order"] == []
    # From the onset to the end there are 23 and 21 evaluations.
    assert (cells[0.8, 20]["undecided"], cells[0.8, 20]["restricted_at"]) == (0, 60)
