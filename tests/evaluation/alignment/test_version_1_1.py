"""Registries and submissions may leave out and add fields since version 1.1 of the contract, and are scored."""

from collections.abc import Callable
from typing import Any

import pytest

from headstart.tests.material.arena import ENTRIES, Arena

MODELS = [entry["model_name"] for entry in ENTRIES]
MAY_BE_LEFT_OUT = ("input_size", "output_dim")


def shortened(entry: dict[str, Any], *fields: str) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key not in fields}


def test_without_output_dim_the_layers_output_is_taken(arena: Arena) -> None:
    arena.write("registry.json", [shortened(entry, *MAY_BE_LEFT_OUT) for entry in ENTRIES[:2]])
    short = arena.score(arena.blue(*MODELS[:2]))
    arena.write("registry.json", [ENTRIES[0], {**ENTRIES[1], "output_dim": 1000}])
    whole = arena.score(arena.blue(*MODELS[:2]))
    assert short["pairwise"] == whole["pairwise"]
    assert short["digests"]["weights"] == whole["digests"]["weights"]


def test_random_weights_instead_of_pretrained_ones(
    arena: Arena, capsys: pytest.CaptureFixture[str], refused: Callable[..., str]
) -> None:
    named = [{"model_name": entry["model_name"], "layer_name": entry["layer"]} for entry in ENTRIES]
    random = arena.score(arena.write("named.json", {"models": named}))
    assert random["contract_version"] == "1.1"
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
