"""A small arena: eighteen stimuli of two data sets and three small random networks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from datamodules.row_computation import ComputedRows
from tests.material.arena import ENTRIES, Arena


@pytest.fixture
def arena(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Arena:
    stimuli = []
    generator = np.random.default_rng(0)
    for dataset in ("nature", "city-scenes"):
        for i in range(9):
            identifier = f"val/{i % 2}/{i}.png"
            path = tmp_path / "datasets" / dataset / identifier
            path.parent.mkdir(parents=True, exist_ok=True)
            coarse = generator.integers(0, 256, (4 + i, 5, 3)).astype(np.uint8)
            Image.fromarray(coarse).resize((40 + i, 36), Image.Resampling.BICUBIC).save(path)
            stimuli.append({"dataset_name": dataset, "image_identifier": identifier})
    for variable in ("MODEL_REGISTRY", "STIMULI_CATALOG", "MODAL_ENABLE", "LOG_DIR"):
        monkeypatch.delenv(f"HACKATHON_{variable}", raising=False)
    monkeypatch.setenv("HACKATHON_DATASET_ROOT", str(tmp_path / "datasets"))
    arena = Arena(tmp_path, tmp_path / "registry.json", tmp_path / "catalog.jsonl", stimuli)
    arena.write("registry.json", {"contract_version": "1.0", "models": ENTRIES})
    arena.write("catalog.jsonl", "".join(json.dumps(stimulus) + "\n" for stimulus in stimuli))
    return arena


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run something that must end with one line on the error stream and exit code 1; give the line."""

    def run(action: Callable[[], object]) -> str:
        with pytest.raises(SystemExit) as end:
            action()
        text = capsys.readouterr().err
        assert end.value.code == 1
        assert text.startswith("error: ")
        assert text.count("\n") == 1, text
        return text

    return run


@pytest.fixture
def no_forward_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test fail as soon as a network runs."""

    def refuse(self: ComputedRows) -> Iterator[Any]:
        raise AssertionError(self.means.title)

    monkeypatch.setattr(ComputedRows, "__iter__", refuse)
