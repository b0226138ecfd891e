"""The leaderboard as CSV can be read with any method names, and has the same numbers as the JSON."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from headstart.tests.material.leaderboards import rank
from headstart.tests.material.ledgers import reach, store

NAMES = [
    "baseline",
    "a|b",
    "x & y_1 {50} % $2^3$ ~ # \\end{tabular}",
    "=HYPERLINK(1)",
    "-1+2",
    "two\nlines",
    "<script>*bold*</script> [link](x)",
    "[5pt] naïve 方法 🙂",
    'comma, "quote"',
]
GENERATOR = np.random.default_rng(0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    traces = {
        name: reach(np.sort(GENERATOR.integers(10 + 3 * index, 20 + 3 * index, 12)), 60)
        for index, name in enumerate(NAMES)
    }
    description = {"dataset": "pets|dogs_&", "backbone": "=net", "weights": "w#1"}
    for batch_size in (1, 2):
        store(tmp_path / "stored", traces, description=description, batch_size=batch_size)
    rank(tmp_path / "stored")
    return tmp_path / "out"


def test_csv_has_every_method_of_every_setting_and_no_formula(folder: Path) -> None:
    document = json.loads((folder / "leaderboard.json").read_text())
    with (folder / "leaderboard.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    methods = [(setting, method) for setting in document["settings"] for method in setting["methods"]]
    assert len(rows) == len(methods) == 2 * len(NAMES)
    for row, (setting, method) in zip(rows, methods, strict=True):
        assert row["method"].removeprefix("'") == method["name"]
        assert row["backbone"] == "'=net"
        assert int(row["batch_size"]) == setting["batch_size"]
        assert float(row["restricted_mean"]) == method["restricted_mean"]
        assert row["p_value_holm"] == ("" if method["p_value_holm"] is None else str(method["p_value_holm"]))
        assert [float(row[f"rank_interval_{end}"]) for end in ("low", "high")] == method["rank_interval"]
    assert not any(re.match(r"[=+@\t\r]|-(?![\d.])", cell) for row in rows for cell in row.values())
