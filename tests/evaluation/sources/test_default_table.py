"""The table of all default metrics, with performances, is fit for a study of their stability."""

import json
from pathlib import Path

import pytest

from headstart import evaluate
from headstart.evaluation.sources.metric_names import DEFAULT_METRICS
from headstart.tests.material.arena import make_entry

SOURCES = ("first", "second", "third", "fourth")
TARGETS = ("one", "two")
PERFORMANCES = {"one": (0.3, 0.5, 0.4, 0.6), "two": (0.7, 0.6, 0.8, 0.9)}


@pytest.mark.slow
def test_default_metrics_have_a_stability(
    tmp_path: Path, photo_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    registry, known = tmp_path / "registry.json", tmp_path / "performances.csv"
    models = [
        make_entry(name, "conv_head", "pool", 1024, source="timm", model_parameters=parameters)
        for classes, name in enumerate(SOURCES, start=3)
        for parameters in [{"model_name": "mobilenetv3_small_050", "num_classes": classes}]
    ]
    registry.write_text(json.dumps({"contract_version": "1.0", "models": models}))
    rows = [
        f"{source},{target},{value}"
        for target in TARGETS
        for source, value in zip(SOURCES, PERFORMANCES[target], strict=True)
    ]
    known.write_text("\n".join(["source,target,performance", *rows]))
    options = [f"--targets.{name}=ClassFolders" for name in TARGETS]
    options += [f"--targets.{name}.root={photo_folder}" for name in TARGETS]
    options += [f"--registry={registry}", f"--performances={known}", f"--output={tmp_path}"]
    device = ["--extraction.num_workers=0", "--extraction.device=cpu"]
    evaluate.main(["transferability", *options, *device, "--logger=false"])
    capsys.readouterr()
    table = tmp_path / "scores.csv"
    evaluate.main(["stability", f"--table={table}", "--pool_size=3", f"--output={tmp_path}", "--logger=false"])
    assert "Left out: num_classes (the same score for all sources" in capsys.readouterr().out
    study = json.loads((tmp_path / "stability.json").read_text())
    assert "num_classes" in study["left_out"]
    assert set(study["metrics"]) == set(DEFAULT_METRICS) - set(study["left_out"])
    assert None not in study["setup_stability"].values()
