"""The table of all default metrics: by the shipped configuration, and fit for a study of their stability."""

import csv
import json
from pathlib import Path

import pytest

from headstart import evaluate
from headstart.evaluation.sources.metric_names import DEFAULT_METRICS
from headstart.tests.evaluation.sources.conftest import score, write_registry
from headstart.tests.material.arena import Arena, make_entry
from headstart.tests.material.score_tables import run_stability

CONFIG = Path(evaluate.__file__).parent / "configs" / "evaluation" / "transferability.yaml"
SOURCES = ("first", "second", "third", "fourth")
PERFORMANCES = {"photos": (0.3, 0.5, 0.4, 0.6), "others": (0.7, 0.6, 0.8, 0.9)}


@pytest.mark.slow
def test_default_metrics_have_a_stability(
    tmp_path: Path, photo_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    networks = [{"model_name": "mobilenetv3_small_050", "num_classes": classes} for classes in (3, 4, 5, 6)]
    pairs = zip(SOURCES, networks, strict=True)
    write_registry(
        tmp_path,
        [make_entry(name, "conv_head", "pool", 1024, source="timm", model_parameters=its) for name, its in pairs],
    )
    rows = [f"{name},{target},{its[i]}" for target, its in PERFORMANCES.items() for i, name in enumerate(SOURCES)]
    (tmp_path / "known.csv").write_text("\n".join(["source,target,performance", *rows]))
    options = ["--targets.others=ClassFolders", f"--targets.others.root={photo_folder}"]
    options += [f"--performances={tmp_path / 'known.csv'}"]
    scored = score(tmp_path, photo_folder, *options, models=f"[{', '.join(SOURCES)}]", output="scores")

    capsys.readouterr()
    study = run_stability(scored.folder / "scores.csv", tmp_path / "study", "--pool_size=3")
    assert "Left out: num_classes (the same score for all sources" in capsys.readouterr().out
    assert "num_classes" in study["left_out"]
    assert set(study["metrics"]) == set(DEFAULT_METRICS) - set(study["left_out"])
    assert None not in study["setup_stability"].values()


def test_shipped_config_runs(arena: Arena, photo_folder: Path) -> None:
    target = {"class_path": "headstart.datamodules.ClassFolders", "init_args": {"root": str(photo_folder)}}
    own = {
        "targets": {"held_out": target},
        "registry": str(arena.registry),
        "models": None,
        "split": "validation",
        "output": str(arena.folder / "out"),
        "extraction": {"num_workers": 0, "device": "cpu"},
        "logger": False,
    }
    evaluate.main(["transferability", f"--config={CONFIG}", f"--config={arena.write('own.yaml', own)}"])
    document = json.loads((arena.folder / "out" / "transferability.json").read_text())
    assert {name: target["photos"] for name, target in document["targets"].items()} == {"held_out": 12}
    with (arena.folder / "out" / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len({row["metric"] for row in rows}) == 10
    assert len(rows) == 30
