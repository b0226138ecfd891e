"""The commands of studies of sources, in small: killed at random moments they end with the same tables."""

import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from headstart.tests.material.checkout import copy_checkout
from headstart.tests.material.root import ROOT, require_checkout

require_checkout()

NAMES = ["animals", "plants", "untrained"]
STUDY = Path("benchmarks") / "local" / "study"
RESULTS, KILLS = "runs/study", 20
# Durations, which differ between runs, and digests: of a table with such a column, and of a registry, whose entries are
# in the order in which the sources were trained.
TIMES = {"total_seconds", "seconds", "table", "registry"}


def commands() -> list[str]:
    """Return the commands of the page, in order, except its grid of recipes, which needs photos."""
    text = (ROOT / "docs" / "study.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```bash\n(headstart .*?)```", text, flags=re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines() if "grid" not in line]


def objects(classes: list[str], train_size: int, seed: int) -> dict[str, Any]:
    sizes = {"train_size": train_size, "validation_size": train_size, "drawing_seed": seed}
    source = {"class_path": "headstart.datamodules.DrawnObjects", "init_args": sizes}
    return {"class_path": "headstart.datamodules.ClassSubset", "init_args": {"source": source, "classes": classes}}


def make_small(checkout: Path) -> None:
    """Shrink the study to two sources that are trained in seconds and one that is not, on two targets."""
    folder = checkout / STUDY
    for name, classes in {"animals": ["fish", "whale"], "plants": ["palm", "pine"]}.items():
        small = {"photos": objects(classes, 1800, 10), "batch_size": 10}
        trainer = {"max_epochs": 3, "accelerator": "cpu"}
        document = {"data": small, "trainer": trainer, "results": {"name": name}}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(document))
    sources = yaml.safe_load((folder / "sources.yaml").read_text())
    configs = [f"{STUDY}/{name}.yaml" for name in NAMES[:2]]
    sources["parameters"]["config"]["values"] = configs
    (folder / "sources.yaml").write_text(yaml.safe_dump(sources))
    (folder / "whole.yaml").write_text(yaml.safe_dump({"trainer": {"max_epochs": 2, "accelerator": "cpu"}}))
    registry = json.loads((folder / "pretrained.json").read_text())
    registry["models"] = [entry for entry in registry["models"] if entry["model_name"] == "untrained"]
    (folder / "pretrained.json").write_text(json.dumps(registry))
    pets = {"class_path": "headstart.datamodules.DrawnPets", "init_args": {"train_size": 40, "validation_size": 40}}
    targets = {"drawn_pets": pets, "drawn_held_out": objects(["octopus", "crab", "frog"], 900, 12)}
    accuracies = yaml.safe_load((folder / "accuracies.yaml").read_text())
    accuracies["parameters"]["data.photos"]["values"] = [*targets.values()]
    backbones = accuracies["parameters"]["data.backbone"]["values"]
    chosen = [each for each in backbones if each["name"] in NAMES]
    accuracies["parameters"]["data.backbone"]["values"] = chosen
    (folder / "accuracies.yaml").write_text(yaml.safe_dump(accuracies))
    scores = yaml.safe_load((folder / "scores.yaml").read_text())
    (folder / "scores.yaml").write_text(yaml.safe_dump(scores | {"targets": targets, "models": NAMES}))


def begin(command: str, checkout: Path, cache: Path) -> subprocess.Popen[bytes]:
    named = "drawn_objects, 12 classes", "drawn_objects, 3 classes"
    _, name, *words = shlex.split(command.replace(*named))
    # The entry points of this checkout.
    door = [f"{name}.py"] if name in ("train", "sweep") else ["evaluate.py", name]
    environment = {**os.environ, "HEADSTART_CACHE": str(cache), "WANDB_MODE": "disabled"}
    environment.pop("HEADSTART_LEDGER", None)
    with (checkout / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, *door, *words],
            cwd=checkout,
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def tables(runs: Path) -> dict[str, Any]:
    """Return all values that the commands have written apart from durations."""
    values: dict[str, Any] = {}
    for path in [*runs.glob("*.csv"), *runs.glob("*/*.csv")]:
        header, *rows = [line.split(",") for line in path.read_text().splitlines()]
        columns = [index for index, column in enumerate(header) if column not in TIMES]
        values[str(path.relative_to(runs))] = [[row[index] for index in columns] for row in [header, *rows]]
    for path in runs.glob("*/*.json"):
        if path.name in ("transferability.json", "audit.json", "stability.json"):
            values[str(path.relative_to(runs))] = without_times(json.loads(path.read_text()))
    return values


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_times(each) for key, each in value.items() if key not in TIMES}
    return [without_times(each) for each in value] if isinstance(value, list) else value


@pytest.mark.slow
def test_killed_at_random_moments(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for checkout in (whole, broken):
        copy_checkout(checkout)
        make_small(checkout)
    seconds = {}
    for command in commands():
        began = time.monotonic()
        assert begin(command, whole, tmp_path / "cache").wait() == 0, (whole / "log").read_text()[-2000:]
        seconds[command] = time.monotonic() - began
    expected = tables(whole / RESULTS)
    assert {"whole.csv", "head.csv", "scores-whole/scores.csv"} <= expected.keys()
    assert {Path(name).name for name in expected} >= {"audit.json", "stability.json"}
    moments, kills, turn = random.Random(0), 0, 0
    while kills < KILLS:
        for command in commands():
            ended = False
            while not ended:
                process = begin(command, broken, tmp_path / f"cache {turn}")
                moment = moments.uniform(0.3, 1.3) * seconds[command]
                try:
                    ended = process.wait(moment if kills < KILLS else None) == 0
                    assert ended, (broken / "log").read_text()[-2000:]
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                    kills += 1
        assert tables(broken / RESULTS) == expected
        turn += 1
        (broken / "runs").rename(broken / f"runs {turn}")
