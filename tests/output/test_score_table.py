"""The printed table says what the results hold."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from metrics.sample_efficiency.scores import score
from output.score_table import print_table


def describe(samples: list[list[float]]) -> dict[str, Any]:
    """Give what the table needs of a results document."""
    values = np.array(samples)
    names = ["baseline", "a_method_with_a_rather_long_name"][: len(values)]
    protocol = {"dataset": "pets", "backbone": "resnet50", "weights": "DEFAULT", "batch_size": 8}
    return {
        "criterion": {"threshold": 0.8, "consecutive": 10},
        "protocol": {**protocol, "orderings": values.shape[1]},
        "restricted_at": 200,
        **score(names, values, values, np.full(values.shape, 0.8125), 200),
    }


def rows(printed: str) -> dict[str, list[str]]:
    lines = [[cell.strip() for cell in line.strip("│┃ \n").split("│")] for line in printed.splitlines() if "│" in line]
    return {name: cells for name, *cells in lines}


def test_scores_stand_in_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(describe([[100, 120, 80, 100], [50, 60, 40, np.inf]]))
    printed = capsys.readouterr().out
    assert re.search(r"80% validation accuracy at 10\s+consecutive", printed)
    for words in ("pets, resnet50 (DEFAULT), 4 orderings, batch size 8", "min(samples, 200)"):
        assert words in printed
    table = rows(printed)
    assert table["baseline"] == ["4/4", "100", "100.0", "", "", "81.2%"]
    reached, median, mean, improvement, p_value, accuracy = table["a_method_with_a_rather_long_name"]
    assert (reached, median, mean, accuracy) == ("3/4", "55", "87.5", "81.2%")
    assert re.fullmatch(r"12 % \[-\d+, \d+\]", improvement)
    assert float(p_value) <= 1


def test_undefined_values_are_words_or_blank(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(describe([[np.inf], [50]]))
    table = rows(capsys.readouterr().out)
    assert table["baseline"][:3] == ["0/1", "not reached", "200.0"]
    assert table["a_method_with_a_rather_long_name"][3:5] == ["75 %", "1"]
