"""The report in Markdown and in print."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.evaluation.sources.results import RankedSources
from headstart.evaluation.sources.scores import Score
from headstart.evaluation.sources.source_ranking import print_source_ranking, source_report
from headstart.evaluation.sources.targets import Target
from headstart.metrics.transferability.catalogue import METRICS

ROOT = Path(__file__).parents[3]
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


def test_print_breaks_no_number(
    results: list[RankedSources], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    print_source_ranking(results)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["good", "1.00", "-0.125", "(1)", "2", "–", "0.9"] in rows
    assert ["bad|*ly*", "2.00", "-1.5", "(2)", "2", "0", "–"] in rows


def test_nothing_heavy_is_imported_with_the_modules() -> None:
    names = ("metric_names", "source_ranking", "results", "scores", "source_features", "targets")
    modules = [f"headstart.evaluation.sources.{name}" for name in names]
    heavy = {"torch", "lightning", "torchmetrics", "torchvision", "timm", "wandb", "modal", "open_clip"}
    code = f"import sys, {', '.join(modules)}; assert not {heavy!r} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_sources_of_the_same_mean_rank_are_first_alike() -> None:
    photos: Any = SomePhotos()
    target = Target("pets", "a_folder", "train", photos, "12ab")
    values = {"one": (1.0, 0.0), "other": (0.0, 1.0), "last": (-1.0, -1.0)}
    chosen = {name: METRICS[name] for name in ("leep", "gbc")}
    scores = {name: {m: Score(v, 0.1) for m, v in zip(chosen, its, strict=True)} for name, its in values.items()}
    result = RankedSources(chosen, scores, {}, target, dict.fromkeys(values, 0.1))
    assert "First by mean rank: one, other, alike.  " in source_report([result], DOCUMENT).splitlines()
