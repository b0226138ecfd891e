"""The table of all default metrics, with performances, is fit for a study of their stability."""

from pathlib import Path

import pytest

from headstart.evaluation.sources.metric_names import DEFAULT_METRICS
from headstart.tests.evaluation.sources.conftest import score, write_registry
from headstart.tests.material.arena import make_entry
from headstart.tests.material.score_tables import run_stability

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
