import csv
import json
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from headstart import evaluate
from headstart.contract.tables.csv_tables import SCORE_COLUMNS
from headstart.evaluation.sources.metric_names import SELECTION_METRICS
from headstart.tests.material.arena import ENTRIES

CLASSES = ("ant", "bee", "cat", "dog", "eel", "fox")
PHOTOS = 6
SETTINGS = [
    *("--targets=7", "--overwrite=true", "--logger=false"),
    *("--extraction.num_workers=0", "--extraction.device=cpu"),
]
TITLES = {"h_score": "H-score", "log_me": "LogME", "gbc": "GBC", "leep": "LEEP", "num_classes": "NumC"}
Run = Callable[..., Path]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("selection")
    generator = np.random.default_rng(0)
    for split in ("train", "validation"):
        for label, name in enumerate(CLASSES):
            photos = root / "animals" / split / name
            photos.mkdir(parents=True)
            for i in range(PHOTOS):
                coarse = generator.integers(20 * label, 20 * label + 100, (4, 4, 3)).astype(np.uint8)
                Image.fromarray(coarse).resize((40, 36), Image.Resampling.BICUBIC).save(photos / f"{i}.png")
    (root / "registry.json").write_text(json.dumps({"contract_version": "1.0", "models": ENTRIES[2:]}))
    return root


def select(folder: Path, output: Path, *options: str) -> Path:
    dataset = ["--dataset=headstart.datamodules.ClassFolders", f"--dataset.root={folder / 'animals'}"]
    arguments = [f"--registry={folder / 'registry.json'}", "--source=mobilenet_v2_narrow", *dataset, *SETTINGS]
    evaluate.main(["target-selection", *arguments, f"--output={output}", *options])
    return output


@pytest.fixture
def run(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command, which reads features that the first one has stored."""
    monkeypatch.setenv("HEADSTART_CACHE", str(folder / "cache"))
    return partial(select, folder, tmp_path / "out")


@dataclass
class Selected:
    """What a run has written and printed."""

    document: dict[str, Any]
    rows: list[dict[str, str]]
    report: str
    printed: str


@pytest.fixture(scope="module")
def varying(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Selected:
    """Select targets of several sizes."""
    output = tmp_path_factory.mktemp("varying") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADSTART_CACHE", str(folder / "cache"))
        patch.setenv("COLUMNS", "400")
        with redirect_stdout(StringIO()) as out:
            select(folder, output, "--class_share=varying", "--seed=3", f"--metrics=[{', '.join(TITLES)}]")
    report = (output / "report.md").read_text()
    return Selected(read_document(output), read_rows(output), report, out.getvalue())


def read_document(out: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((out / "targets.json").read_text())
    return document


def read_rows(out: Path) -> list[dict[str, str]]:
    with (out / "scores.csv").open(newline="") as file:
        reader = csv.DictReader(file)
        assert tuple(reader.fieldnames or ()) == SCORE_COLUMNS
        return list(reader)


def test_half_of_the_classes_make_a_plain_table_targets_and_a_report(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    out = run()
    rows, document = read_rows(out), read_document(out)
    assert len(document["targets"]) == 7
    for target in document["targets"].values():
        assert (len(target["classes"]), target["photos"]) == (3, 3 * PHOTOS)
        assert set(target["classes"]) < set(CLASSES)
    assert {row["target"] for row in rows} == set(document["targets"])
    assert {row["metric"] for row in rows} == set(document["metrics"]) == set(SELECTION_METRICS)
    assert all(row["performance"] == "" and float(row["seconds"]) >= 0 and row["score"] for row in rows)
    assert document["kendall_with_num_classes"]["gbc"] is None
    for text in ((out / "report.md").read_text(), capsys.readouterr().out):
        assert "All targets have 3 classes" in text
        assert "Warning: the targets have" not in text


def test_a_varying_share_warns_and_is_compared_with_the_number_of_classes(varying: Selected) -> None:
    sizes = {name: len(target["classes"]) for name, target in varying.document["targets"].items()}
    assert len(set(sizes.values())) > 1
    # NumC with a reversed sign ranks exactly as NumC does.
    assert varying.document["kendall_with_num_classes"]["num_classes"] == 1
    counts = {row["target"]: -float(row["score"]) for row in varying.rows if row["metric"] == "num_classes"}
    assert counts == sizes
    for text in (varying.report.replace("\\", ""), varying.printed):
        assert f"the targets have from {min(sizes.values())} to {max(sizes.values())} classes" in text
        assert "--class_share=half" in text


def test_saturated_metrics_are_not_compared(run: Run) -> None:
    # Fewer photos than features tell the three classes of every target apart.
    out = run("--metrics=[h_score, log_me]")
    names = read_document(out)["targets"]
    assert set(read_document(out)["saturated"]["h_score"]) == set(names)
    assert f"- H-score is saturated: {len(names)} of {len(names)} targets have the" in (out / "report.md").read_text()


def test_the_report_titles_and_ranks_the_metrics_and_is_printed(varying: Selected) -> None:
    scores: dict[str, dict[str, float]] = {}
    for row in varying.rows:
        scores.setdefault(row["metric"], {})[row["target"]] = float(row["score"])
    lines = varying.report.splitlines()
    for metric, title in TITLES.items():
        [line] = [line for line in lines if line.startswith((f"| {title} |", f"| {title} (saturated) |"))]
        best = line.split(" | ")[1]
        # Scores that differ by rounding errors alone share a rank.
        assert scores[metric][best] == pytest.approx(max(scores[metric].values()), rel=1e-10)
    shown = [line for line in lines if line.startswith(("| animals-", "| LogME"))]
    assert len(shown) == 8
    printed = [" ".join(line.split()) for line in varying.printed.splitlines()]
    assert [line for line in shown if " ".join(line.replace("|", " ").split()) not in printed] == []


def test_mistakes_and_other_configurations_are_refused(run: Run, refused: Callable[..., str], tmp_path: Path) -> None:
    metric = "--metrics=[num_classes]"
    mistakes: list[tuple[list[str], str]] = [
        (["--source=resnet999"], "source: 'resnet999' not in the registry; it has mobilenet_v2_narrow"),
        (["--metrics=[h_score, ncti, etran]"], "error: metrics: ncti, etran compare sources"),
        (["--dataset.root=nowhere"], "error: dataset.root: there is no folder nowhere"),
    ]
    lines = [(message, refused(partial(run, *options))) for options, message in mistakes]
    assert not (tmp_path / "out").exists()

    run(metric)
    changes: list[tuple[list[str], str]] = [
        (["--metrics=[h_score]"], "metrics"),
        ([metric, "--seed=1"], "seed, targets"),
        ([metric, "--extraction.precision=bfloat16"], "extraction/precision"),
    ]
    for options, key in changes:
        line = refused(partial(run, *options, "--overwrite=false"))
        lines.append((f"holds results of another configuration ({key}); choose another folder", line))
    assert [pair for pair in lines if pair[0] not in pair[1]] == []
    run(metric, "--overwrite=false", "--extraction.num_workers=1")
