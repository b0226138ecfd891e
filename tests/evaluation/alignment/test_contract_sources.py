"""Submissions with models of open_clip and of one's own code, with paths that do not resolve, and scored twice."""

import json
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image
from torch import nn

from headstart.tests.material.arena import ENTRIES, Arena, make_entry

MODELS = [entry["model_name"] for entry in ENTRIES]
CODE = """
from torch import nn

class Scaled(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Conv2d(3, width, 8)

    def forward(self, photos, power=1):
        return self.layer(photos) ** power

def build(width):
    return Scaled(width)
"""


def clip_entry(**fields: Any) -> dict[str, Any]:
    parameters = {"model_name": "tiny"}
    return make_entry("clip", "visual", "flatten", 4, source="open_clip", model_parameters=parameters, **fields)


def embeddings(arena: Arena, name: str, *options: str) -> Any:
    arena.score(arena.blue(MODELS[0], name), "--save_embeddings=true", *options)
    with np.load(arena.folder / "out" / "embeddings.npz") as arrays:
        return arrays[name]


def test_open_clip_without_the_package(
    arena: Arena, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "open_clip", None)
    arena.write("registry.json", [*ENTRIES, clip_entry()])
    assert "pip install 'headstart[open_clip]'" in refused(lambda: arena.score(arena.blue(MODELS[0], "clip")))


def test_open_clip_with_the_package(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    class Clip(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.visual = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 4))

        def forward(self, image: Any = None, text: Any = None) -> Any:
            assert text is None
            return self.visual(image)

    def create_model(name: str, **options: Any) -> nn.Module:
        assert name == "tiny"
        return Clip()

    module = SimpleNamespace(create_model=create_model, list_models=lambda: ["tiny"])
    monkeypatch.setitem(sys.modules, "open_clip", module)
    arena.write("registry.json", [*ENTRIES, clip_entry()])
    assert embeddings(arena, "clip").shape == (18, 4)


def test_own_code_with_arguments_of_constructor_and_forward_pass(
    arena: Arena, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (arena.folder / "zoo_of_this_test.py").write_text(CODE)
    monkeypatch.syspath_prepend(str(arena.folder))
    own = {"source": "custom", "model_parameters": {"name": "zoo_of_this_test.build", "width": 5}}
    arena.write("registry.json", [*ENTRIES, make_entry("mine", "logits", "pool", 5, **own)])
    assert "allow_modules" in refused(lambda: arena.score(arena.blue(MODELS[0], "mine")))

    allowed = "--extraction.allow_modules=[zoo_of_this_test]"
    plain = embeddings(arena, "mine", allowed)
    entry = make_entry("mine", "logits", "pool", 5, **own, forward_args={"power": 2})
    arena.write("registry.json", [*ENTRIES, entry])
    squared = embeddings(arena, "mine", allowed)
    assert plain.shape == squared.shape == (18, 5)
    assert (plain < 0).any()
    assert (squared >= 0).all()


@pytest.mark.usefixtures("no_forward_pass")
def test_paths_that_do_not_resolve_fail_the_submission(arena: Arena, refused: Callable[..., str]) -> None:
    arena.photo(3).unlink()
    text = refused(lambda: arena.score(arena.red([2, 3, 4])))
    stimulus = arena.stimuli[3]
    assert f"{stimulus['dataset_name']}/{stimulus['image_identifier']}" in text
    assert not (arena.folder / "out").exists()


def test_second_score_is_the_same_and_opens_no_photo(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    first = arena.score(arena.red([1, 4, 9, 12]), output="first")

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a photo was opened")

    monkeypatch.setattr(Image, "open", refuse)
    second = arena.score(arena.red([1, 4, 9, 12]), output="second")
    assert json.dumps({**first, "timings": 0}) == json.dumps({**second, "timings": 0})
    assert second["timings"]["rows_computed"] == 0
