"""The report in Markdown and in print."""

from typing import Any

import numpy as np
import pytest

from headstart.evaluation.sources.results import RankedSources
from headstart.evaluation.sources.scores import Score
from headstart.evaluation.sources.source_ranking import source_report
from headstart.evaluation.sources.targets import Target
from headstart.metrics.transferability.catalogue import METRICS

CHOSEN = {name: METRICS[name] for name in ("leep", "num_classes", "gbc")}
VALUES: dict[str, list[float | None]] = {"bad|*ly*": [-1.5, 2.0, -0.0], "good": [-0.125, 2.0, None]}
DOCUMENT = {
    "seed": 3,
    "versions": {"torch": "2.13"},
    "digests": {"weights": {"good": "34cd", "bad|*ly*": "56ef"}},
    "weights_files": {"good": "78ab", "bad|*ly*": None, "one": None, "other": None, "last": None},
}


class SomePhotos:
    """Photos as far as a report reads them."""

    classes = ("cats", "dogs")
    labels = np.arange(2000) % 2
    maps = None

    def __len__(self) -> int:
        return 2000


@pytest.fixture
def results() -> list[RankedSources]:
    photos: Any = SomePhotos()
    target = Target("pets", "a_folder", "train", photos, "12ab")
    scores: dict[str, dict[str, Score]] = {
        source: {
            metric: Score(value, 0.25, "too few photos" if value is None else "")
            for metric, value in zip(CHOSEN, values, strict=True)
        }
        for source, values in VALUES.items()
    }
    return [RankedSources(CHOSEN, scores, {"good": 0.9}, target, {"good": 1.5, "bad|*ly*": 2.5})]


def test_markdown(results: list[RankedSources]) -> None:
    text = source_report(results, DOCUMENT)
    lines = text.splitlines()
    assert "## pets" in lines
    assert "2,000 training photos of 2 classes (a\\_folder)." in lines
    start = lines.index("| source | mean rank | LEEP | NumC | GBC | performance |")
    assert lines[start + 1 : start + 4] == [
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        "| good | 1.00 | -0.125 (1) | 2 | – | 0.9 |",
        "| bad\\|\\*ly\\* | 2.00 | -1.5 (2) | 2 | 0 | – |",
    ]
    assert "- GBC has no score for good: too few photos." in lines
    assert any(line.startswith("- NumC counts the classes of the target") for line in lines)
    assert "| good | 1.50 | 0.25 | 0.25 | 0.25 | 0.00 |" in lines
    assert "| good | 34cd | 78ab |" in lines
    assert "| bad\\|\\*ly\\* | 56ef |  |" in lines
    assert "Seed 3; torch 2.13." in lines
