"""An option that settings vary is an axis: scores by its values, in panels of the settings that differ in it alone."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy import stats

from headstart.tests.material.leaderboards import rank
from headstart.tests.material.ledgers import reach
from headstart.tests.material.runs import write_run

METHODS = ("baseline", "one", "two")
LIMIT = 120


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Write runs of three batch sizes, two networks, two data sets and two seeds; one of them is missing."""
    folder = tmp_path / "runs"
    folder.mkdir()
    for size, network, dataset, seed in product((8, 1, 16), ("small", "large"), ("pets", "bees"), (0, 1)):
        if (size, network, dataset) != (16, "large", "bees"):
            name = f"{size} {network} {dataset} {seed}"
            write_run(
                folder / name,
                np.stack([reach(each, LIMIT) for each in samples(size, network, dataset, seed)]),
                limit=LIMIT,
                methods=METHODS,
                dataset=dataset,
                backbone=network,
                weights_sha256=network,
                train_photos_sha256=dataset,
                seed=seed,
                stream_sha256=name,
                # The counts are those of every sample.
                fed_in_batches=size,
            )
    return folder


def samples(size: int, network: str, dataset: str, seed: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    generator = np.random.default_rng((size, len(network) + len(dataset) * 10, seed))
    return np.clip(np.round(generator.lognormal(3.4, 0.3, (3, 8)) * [[1.6], [1.0], [1.2]] * (1 + size / 20)), 10, LIMIT)


def test_scores_stand_by_values_in_panels_of_settings(runs: Path, tmp_path: Path) -> None:
    axis = rank(runs, axis="data.fed_in_batches", at=[40])["axis"]
    panels = {panel["name"]: panel for panel in axis["panels"]}
    assert sorted(panels) == sorted(f"{d}, {n} (DEFAULT)" for d, n in product(("pets", "bees"), ("small", "large")))
    assert panels["bees, large (DEFAULT)"]["values"] == [1, 8]
    panel = panels["pets, large (DEFAULT)"]
    assert panel["values"] == [1, 8, 16]
    for method in panel["methods"]:
        for score in method["scores"]:
            fed = [samples(score["value"], "large", "pets", seed) for seed in (0, 1)]
            # Runs of this helper meet the criterion at three evaluations in a row, instead of ten.
            own = np.concatenate([each[METHODS.index(method["name"])] for each in fed]) - 7
            assert score["restricted_mean"] == pytest.approx(own.mean())
            assert score["ci95"] == pytest.approx(stats.t.interval(0.95, 15, own.mean(), stats.sem(own)))
            assert [each["labels"] for each in score["label_budgets"]] == [40]

    for name in ("axis.png", "axis_accuracy.png"):
        with Image.open(tmp_path / "out" / name) as picture:
            assert picture.width > 600
    markdown = (tmp_path / "out" / "leaderboard.md").read_text()
    header = r"| method | fed\_in\_batches 1 | fed\_in\_batches 8 | fed\_in\_batches 16 |"
    assert markdown.count(header) == 2 * 3
    assert "## pets, large (DEFAULT): accuracy at 40 labels, %" in markdown


def test_backbones_are_an_axis_with_all_that_follows_from_them(runs: Path) -> None:
    [panel] = rank(runs, axis="data.backbone", where={"dataset": "pets", "fed_in_batches": 1})["axis"]["panels"]
    assert (panel["name"], panel["values"]) == ("pets, all backbones (all weights)", ["large", "small"])
