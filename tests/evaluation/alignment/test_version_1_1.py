"""Registries and submissions may leave out and add fields since version 1.1 of the contract, and are scored."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headstart.tests.material.arena import ENTRIES, Arena, make_entry

MODELS = [entry["model_name"] for entry in ENTRIES]
MAY_BE_LEFT_OUT = ("input_size", "output_dim")

# No digest sees a module whose name is computed.
MODULE = """
from pathlib import Path
from torch import nn

def network():
    width = int(Path(__file__).with_name("width.txt").read_text())
    return nn.Sequential(nn.AvgPool2d(8), nn.Flatten(), nn.Linear(48, width))
"""


def shortened(entry: dict[str, Any], *fields: str) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key not in fields}


def test_without_output_dim_the_layers_output_is_taken(arena: Arena) -> None:
    arena.write("registry.json", [shortened(entry, *MAY_BE_LEFT_OUT) for entry in ENTRIES[:2]])
    short = arena.score(arena.blue(*MODELS[:2]))
    arena.write("registry.json", [ENTRIES[0], {**ENTRIES[1], "output_dim": 1000}])
    whole = arena.score(arena.blue(*MODELS[:2]))
    assert short["pairwise"] == whole["pairwise"]
    assert short["digests"]["weights"] == whole["digests"]["weights"]


def test_measured_width_is_held_to(
    arena: Arena, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(arena.folder)
    arena.write("mine.py", MODULE)
    entry = make_entry("mine", "2", "flatten", 7, source="custom", model_parameters={"name": "mine.network"})
    arena.write("registry.json", [*ENTRIES[:1], shortened(entry, "output_dim")])
    allowed = "--extraction.allow_modules=[mine]"
    arena.write("width.txt", "5")
    # Where the measured width cannot be kept, nothing is scored.
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "measured_widths").write_text("")
    no_cache = f"--extraction.cache_dir={tmp_path / 'cache'}"
    text = refused(lambda: arena.score(arena.red([0, 1, 2]), allowed, no_cache))
    assert "measured_widths' cannot be written (File exists); choose another folder" in text

    arena.score(arena.red([0, 1, 2]), allowed)
    arena.write("width.txt", "7")
    text = refused(lambda: arena.score(arena.red([5, 6, 7]), allowed))
    assert "model 'mine': layer '2' gives 7 columns, and gave 5 when its output_dim" in text
    arena.write("registry.json", [*ENTRIES[:1], entry])
    arena.score(arena.red([5, 6, 7]), allowed)


def test_submission_that_names_layers(arena: Arena) -> None:
    named = [{"model_name": entry["model_name"], "layer_name": entry["layer"]} for entry in ENTRIES]
    document = arena.score(arena.write("named.json", {"models": named}))
    plain = arena.score(arena.blue(*MODELS), output="plain")
    assert (document["contract_version"], plain["contract_version"]) == ("1.1", "1.0")
    assert document["score"] == plain["score"]


def test_random_weights_instead_of_pretrained_ones(
    arena: Arena, capsys: pytest.CaptureFixture[str], refused: Callable[..., str]
) -> None:
    random = arena.score(arena.blue(*MODELS))
    registry = [{**ENTRIES[0], "weights": "gone.pth"}, *({**entry, "weights": "DEFAULT"} for entry in ENTRIES[1:])]
    arena.write("registry.json", registry)
    capsys.readouterr()
    again = ("--extraction.random_weights=true", "--overwrite=false")
    assert "extraction" in refused(lambda: arena.score(arena.blue(*MODELS), *again))
    document = arena.score(arena.blue(*MODELS), "--extraction.random_weights=true")
    assert "under contract 1.0, with random weights" in capsys.readouterr().out
    assert document["pairwise"] == random["pairwise"]
    assert document["timings"]["rows_computed"] == 0
    assert document["extraction"] == {**random["extraction"], "random_weights": True}
