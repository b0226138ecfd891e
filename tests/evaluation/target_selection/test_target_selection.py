import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from headstart import evaluate
from headstart.contract.tables.csv_tables import SCORE_COLUMNS
from headstart.contract.tables.read_table import read_table
from headstart.datamodules.row_computation import RowComputer
from headstart.metrics.ranking.ranking_measures import weighted_kendall
from headstart.output.results_folder import DashboardResults

CLASSES = ("ant", "bee", "cat", "dog", "eel", "fox")
PHOTOS = 6
SIDE = 32
ENTRY = {
    "model_name": "mobilenet_v2_narrow",
    "source": "torchvision",
    "weights": None,
    "layer": "classifier",
    "embedding": "flatten",
    "input_size": [SIDE, SIDE],
    "preprocess": {"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5], "resize": SIDE, "crop": SIDE},
    "output_dim": 1280,
    "model_parameters": {"width_mult": 0.25},
}
SETTINGS = [
    "--targets=7",
    "--overwrite=true",
    "--logger=false",
    "--extraction.num_workers=0",
    "--extraction.device=cpu",
]
TITLES = {"h_score": "H-score", "gbc": "GBC (textbook)", "leep": "LEEP", "num_classes": "NumC"}
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
    (root / "registry.json").write_text(json.dumps({"contract_version": "1.0", "models": [ENTRY]}))
    return root


@pytest.fixture
def run(folder: Path, tmp_path: Path) -> Run:
    def select(*options: str) -> Path:
        dataset = ["--dataset=headstart.datamodules.ClassFolders", f"--dataset.root={folder / 'animals'}"]
        arguments = [f"--registry={folder / 'registry.json'}", "--source=mobilenet_v2_narrow", *dataset, *SETTINGS]
        evaluate.main(["target-selection", *arguments, f"--output={tmp_path / 'out'}", *options])
        return tmp_path / "out"

    return select


def test_rows_of_transferability_are_read(
    run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = ["--targets.animals=headstart.datamodules.ClassFolders", f"--targets.animals.root={folder / 'animals'}"]
    options = [f"--registry={folder / 'registry.json'}", f"--output={tmp_path / 'scores'}", *targets, *SETTINGS[1:]]
    evaluate.main(["transferability", "--metrics=[num_classes]", *options])
    monkeypatch.setattr(RowComputer, "compute", lambda *_: pytest.fail("a row is computed again"))
    assert len(read_rows(run("--metrics=[h_score]"))) == 7


def read_rows(out: Path) -> list[dict[str, str]]:
    with (out / "scores.csv").open(newline="") as file:
        reader = csv.DictReader(file)
        assert tuple(reader.fieldnames or ()) == SCORE_COLUMNS
        return list(reader)


def test_half_of_the_classes_make_a_plain_table_targets_and_a_report(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    out = run()
    rows = read_rows(out)
    document = json.loads((out / "targets.json").read_text())
    report = (out / "report.md").read_text()
    assert len(document["targets"]) == 7
    for target in document["targets"].values():
        assert len(target["classes"]) == 3
        assert set(target["classes"]) < set(CLASSES)
        assert target["photos"] == 3 * PHOTOS
    assert {row["target"] for row in rows} == set(document["targets"])
    assert {row["metric"] for row in rows} == set(document["metrics"])
    assert "n_leep" not in document["metrics"]
    assert {row["source"] for row in rows} == {"mobilenet_v2_narrow"}
    assert all(row["performance"] == "" and float(row["seconds"]) >= 0 for row in rows)
    assert all(row["score"] for row in rows)
    assert document["kendall_with_num_classes"]["gbc"] is None
    assert "All targets have 3 classes" in report
    assert "Warning: the targets have" not in report
    assert "All targets have 3 classes" in capsys.readouterr().out


def test_a_varying_share_warns_and_is_compared_with_the_number_of_classes(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    out = run("--class_share=varying", "--metrics=[h_score, gbc, num_classes]", "--seed=3")
    document = json.loads((out / "targets.json").read_text())
    sizes = {name: len(target["classes"]) for name, target in document["targets"].items()}
    assert len(set(sizes.values())) > 1
    # NumC with a reversed sign ranks exactly as NumC does.
    assert document["kendall_with_num_classes"]["num_classes"] == 1
    for row in read_rows(out):
        if row["metric"] == "num_classes":
            assert float(row["score"]) == -sizes[row["target"]]
    for text in ((out / "report.md").read_text().replace("\\", ""), capsys.readouterr().out):
        assert f"the targets have from {min(sizes.values())} to {max(sizes.values())} classes" in text
        assert "--class_share=half" in text


def test_metrics_that_compare_sources_are_refused(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="1"):
        run("--metrics=[h_score, ncti, etran]")
    assert "error: metrics: ncti, etran compare sources" in capsys.readouterr().err


def test_a_seed_decides_the_targets(run: Run) -> None:
    drawn = []
    for seed in (0, 0, 1):
        out = run(f"--seed={seed}", "--metrics=[num_classes]")
        drawn.append(json.loads((out / "targets.json").read_text())["targets"])
    assert drawn[0] == drawn[1] != drawn[2]


def test_known_performances_fill_the_table_and_judge_the_metrics(run: Run, folder: Path) -> None:
    out = run("--class_share=varying", "--metrics=[h_score, log_me]")
    names = list(json.loads((out / "targets.json").read_text())["targets"])
    reached = {name: 0.5 + 0.05 * (index * 3 % 7) for index, name in enumerate(names)}
    lines = ["source,target,performance", *(f"mobilenet_v2_narrow,{name},{value}" for name, value in reached.items())]
    table = folder / "performances.csv"
    table.write_text("\n".join(lines) + "\n")
    out = run("--class_share=varying", "--metrics=[h_score, log_me]", f"--performances={table}")
    rows = [row for row in read_rows(out) if row["metric"] == "log_me"]
    assert [float(row["performance"]) for row in rows] == [reached[row["target"]] for row in rows]
    measures = json.loads((out / "targets.json").read_text())["measures"]
    expected = weighted_kendall([float(row["score"]) for row in rows], [float(row["performance"]) for row in rows])
    assert measures["weighted_kendall"]["log_me"] == pytest.approx(expected)
    table.write_text("\n".join(lines[:-1]) + "\n")
    out = run("--class_share=varying", "--metrics=[h_score, log_me]", f"--performances={table}")
    assert json.loads((out / "targets.json").read_text())["measures"] == {}
    assert {row["performance"] == "" for row in read_rows(out)} == {True, False}


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--source=resnet999", "source: 'resnet999' not in the registry; it has mobilenet_v2_narrow"),
        ("--metrics=[gbc, gbc]", "metrics: gbc, gbc given"),
        ("--performances=nowhere.csv", "performances: 'nowhere.csv' cannot be read"),
        ("--dataset.root=nowhere", "error: dataset.root: there is no folder nowhere"),
    ],
)
def test_a_mistake_is_one_line(run: Run, refused: Callable[..., str], option: str, message: str) -> None:
    assert message in refused(lambda: run(option))


def test_metrics_are_titled_and_ranked_in_the_report(run: Run) -> None:
    out = run("--metrics=[h_score, gbc, leep, num_classes]", "--class_share=varying")
    document = json.loads((out / "targets.json").read_text())
    report = (out / "report.md").read_text()
    scores: dict[str, dict[str, float]] = {}
    for row in read_rows(out):
        scores.setdefault(row["metric"], {})[row["target"]] = float(row["score"])
    for metric, title in TITLES.items():
        [line] = [line for line in report.splitlines() if line.startswith(f"| {title} |")]
        best = line.split(" | ")[1]
        # Scores that differ by rounding errors alone share a rank.
        assert scores[metric][best] == pytest.approx(max(scores[metric].values()), rel=1e-10)
    assert all(f"| {name} |" in report for name in document["targets"])


def test_the_printed_report_holds_the_tables_of_the_written_one(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    metrics = "[gbc, leep, log_me, h_score, h_score_shrunk, nce, trans_rate, num_classes]"
    out = run(f"--metrics={metrics}", "--class_share=varying")
    cells = [
        [cell.strip() for cell in line.strip("| ").split("|")]
        for line in (out / "report.md").read_text().splitlines()
        if line.startswith("| animals-") or line.startswith("| LogME")
    ]
    assert len(cells) == 8
    printed = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    for row in cells:
        assert " ".join(row) in printed


def test_a_saturated_metric_over_targets_is_named_and_not_measured(run: Run, folder: Path) -> None:
    names = json.loads((run("--metrics=[h_score, log_me]") / "targets.json").read_text())["targets"]
    table = folder / "all.csv"
    lines = [f"mobilenet_v2_narrow,{name},{0.5 + index / 20}" for index, name in enumerate(names)]
    table.write_text("\n".join(["source,target,performance", *lines]))
    # Fewer photos than features tell the three classes of every target apart.
    out = run("--metrics=[h_score, log_me]", f"--performances={table}")
    document = json.loads((out / "targets.json").read_text())
    assert all(measured["h_score"] is None for measured in document["measures"].values())
    assert None not in [measured["log_me"] for measured in document["measures"].values()]
    assert set(document["saturated"]["h_score"]) == set(names)
    assert f"- H-score is saturated: {len(names)} of {len(names)} targets have the" in (out / "report.md").read_text()


def test_photos_that_are_there_twice_are_counted_once_in_every_target(run: Run, folder: Path) -> None:
    before = read_rows(run("--metrics=[log_me, h_score]"))
    ants = folder / "animals" / "train" / CLASSES[0]
    copy = ants / "zz.png"
    copy.write_bytes((ants / "0.png").read_bytes())
    try:
        out = run("--metrics=[log_me, h_score]")
    finally:
        copy.unlink()
    assert [row["score"] for row in read_rows(out)] == [row["score"] for row in before]
    document = json.loads((out / "targets.json").read_text())
    assert [[Path(name).name for name in names] for names in document["repeated_photos"]] == [["0.png", "zz.png"]]
    assert "which leaves out 1" in (out / "report.md").read_text()


def test_the_tables_of_two_sources_together_are_one_for_a_stability_study(run: Run, tmp_path: Path) -> None:
    def score(row: dict[str, str], index: int) -> str:
        return row["score"] if row["metric"] == "num_classes" else str(float(row["score"]) + index)

    rows = read_rows(run("--metrics=[h_score, gbc, num_classes]"))
    joined = [
        {**row, "source": source, "score": score(row, index), "performance": str(index)}
        for index, source in enumerate(("a", "b"))
        for row in rows
    ]
    with (tmp_path / "joined.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, SCORE_COLUMNS)
        writer.writeheader()
        writer.writerows(joined)
    table = read_table(tmp_path / "joined.csv")
    assert table.scores.shape == (2, 2, 7)
    assert list(table.left_out) == ["num_classes"]


def test_the_dashboard_is_given_the_table_and_the_files(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    published: list[tuple[Any, ...]] = []
    monkeypatch.setattr(DashboardResults, "publish", lambda *args: published.append(args))
    out = run("--metrics=[num_classes]", "--logger=true")
    [(results, job_type, title, config, document, tables)] = published
    targets = json.loads((out / "targets.json").read_text())["targets"]
    assert (job_type, results.path, config["class_share"]) == ("target-selection", out, "half")
    assert title == "target selection, mobilenet_v2_narrow, 7 targets of animals"
    assert [row[2] for row in tables["scores"][1]] == [row[0] for row in tables["targets"][1]] == list(targets)
    assert document["kendall_with_num_classes"] == {"num_classes": None}
    assert [path.name for path in results.written] == ["scores.csv", "report.md", "targets.json"]


def test_results_of_another_configuration_are_not_replaced_unasked(run: Run, refused: Callable[..., str]) -> None:
    out = run("--metrics=[num_classes]")
    before = (out / "scores.csv").read_bytes()
    for option, key in {
        "--metrics=[h_score]": "metrics",
        "--seed=1": "seed, targets",
        "--targets=8": "targets",
        "--extraction.precision=bfloat16": "extraction/precision",
    }.items():
        options = ["--metrics=[num_classes]"] * (not option.startswith("--metrics"))
        message = refused(lambda option=option, options=options: run(*options, option, "--overwrite=false"))
        assert f"holds results of another configuration ({key}); choose another folder" in message
    assert (out / "scores.csv").read_bytes() == before
    run("--metrics=[num_classes]", "--overwrite=false", "--extraction.num_workers=1")
