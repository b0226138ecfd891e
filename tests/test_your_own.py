"""The page on data, backbones and metrics of one's own: its files written and its commands run, in order."""

import json
import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from headstart.__main__ import main
from headstart.tests.material.root import ROOT, require_checkout

FEWER = {
    "train": ["--data.orderings=2", "--data.max_samples=20", "--data.num_workers=0", "--trainer.logger=false"],
    "transferability": ["--models=[drawn_objects, random]", "--extraction.num_workers=0"],
    "runs/tiny": ["--data.photos.train_size=40", "--data.photos.validation_size=20"],
    "runs/entry": ["--data.photos.train_size=40", "--data.photos.validation_size=20"],
    "runs/photos": ["--data.orderings=1", "--data.photos.train_size=40", "--data.photos.validation_size=20"],
    "runs/my_metric": ["--targets.drawn_pets.train_size=40"],
}


def run(command: str) -> None:
    program, *words = shlex.split(command)
    if program == "headstart":
        main([*words, *FEWER.get(words[0], []), *FEWER.get(words[-1].partition("=")[2], [])])
    else:
        assert program == "python"
        runpy.run_path(words[0])


@pytest.mark.slow
def test_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_checkout()
    datasets = pytest.importorskip("datasets", reason="the extra datasets is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.syspath_prepend(tmp_path)
    # Pictures would take a third of the time.
    monkeypatch.setattr(Figure, "savefig", lambda self, path, **options: Path(path).touch())
    page = (ROOT / "docs" / "your_own.md").read_text()
    ran = 0
    for kind, block in re.findall(r"^```(\w*)\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE):
        if kind == "python":
            Path(block.splitlines()[0].removeprefix("# ")).write_text(block)
        else:
            for command in block.splitlines():
                run(command)
                ran += 1
    assert ran == 17
    for name in ("my_sources", "my_networks", "my_metrics", "my_modules"):
        monkeypatch.delitem(sys.modules, name)

    protocols = {
        path.parent.name: json.loads(path.read_text())["protocol"] for path in Path("runs").glob("*/results.json")
    }
    assert {name: protocol["dataset"] for name, protocol in protocols.items()} == {
        "folders": "my_photos",
        "list": "photos",
        "hub": "my_photos",
        "shards": tmp_path.name,
        "parquet": tmp_path.name,
        "mine": "every_third",
        "tiny": "drawn_pets",
        "entry": "drawn_pets",
        "module": "drawn_pets",
        "photos": "drawn_pets",
    }
    sizes = {name: protocol["validation_size"] for name, protocol in protocols.items()}
    expected = {
        "folders": 36,
        "list": 24,
        "hub": 24,
        "shards": 24,
        "parquet": 24,
        "mine": 40,
        "tiny": 20,
        "entry": 20,
        "module": 500,
        "photos": 20,
    }
    assert sizes == expected
    assert all(protocol["classes"] == ["cats", "dogs"] for protocol in protocols.values())
    assert "my_metrics.spread" in Path("runs/my_metric/scores.csv").read_text()
    assert "mine" in Path("runs/my_target/scores.csv").read_text()
