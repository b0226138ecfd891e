"""The shipped configuration, with targets of a file of one's own, on photos and networks that take seconds."""

import csv
import json
from pathlib import Path

from headstart import evaluate
from headstart.tests.material.arena import Arena

CONFIG = Path(evaluate.__file__).parent / "configs" / "evaluation" / "transferability.yaml"


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
    assert {name: each["photos"] for name, each in document["targets"].items()} == {"held_out": 12}
    with (arena.folder / "out" / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len({row["metric"] for row in rows}) == 10
    assert len(rows) == 30
