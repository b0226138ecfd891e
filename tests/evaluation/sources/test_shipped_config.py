"""The shipped configuration, on photos and networks that take seconds."""

import csv
import json
from pathlib import Path

from headstart import evaluate
from headstart.tests.material.arena import Arena

CONFIG = Path(evaluate.__file__).parent / "configs" / "evaluation" / "transferability.yaml"


def test_shipped_config_runs(arena: Arena, photo_folder: Path) -> None:
    source = {"class_path": "headstart.datamodules.ClassFolders", "init_args": {"root": str(photo_folder)}}
    options = [f"--registry={arena.registry}", "--models=null", "--logger=false"]
    options.append(f"--targets={json.dumps({'pictures': source})}")
    folder = arena.folder / "out"
    extraction = ["--extraction.num_workers=0", "--extraction.device=cpu"]
    evaluate.main(["transferability", f"--config={CONFIG}", *options, *extraction, f"--output={folder}"])
    with (folder / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["target"] for row in rows} == {"pictures"}
    assert len({row["metric"] for row in rows}) == 10
    assert len(rows) == 30
