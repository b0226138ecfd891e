"""The registries and networks that come with the suite: valid, with the libraries' preprocessing and right widths."""

import json
import math
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
import torchvision

from headstart.contract.documents import read_registry
from headstart.modules.networks.build import build
from headstart.modules.networks.layer_embedding import LayerEmbedding
from headstart.modules.networks.libraries import LIBRARIES
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.taps import Tap
from headstart.tests.material.root import ROOT

PATH = Path(__file__).parents[1] / "configs" / "model_registry.json"
ENTRIES: dict[str, dict[str, Any]] = {entry["model_name"]: entry for entry in json.loads(PATH.read_text())["models"]}
NETWORKS = read_registry(PATH).networks(list(ENTRIES), seed=0)
# open_clip is an optional dependency.
AVAILABLE = [
    name for name, entry in ENTRIES.items() if entry["source"] != "open_clip" or find_spec("open_clip") is not None
]
# Training values of OpenAI's CLIP and its successors in open_clip (open_clip's constants and default configuration).
CLIP = Preprocessing(224, 224, (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711), "bicubic")


def read_preprocessing(entry: dict[str, Any]) -> Preprocessing:
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in entry["preprocess"].items()
    }
    return Preprocessing(**values)


def test_example_of_the_contract() -> None:
    entry = ENTRIES["resnet50"]
    example = {"source": "torchvision", "weights": "IMAGENET1K_V2", "layer": "fc", "embedding": "flatten"}
    assert {key: entry[key] for key in example} == example
    assert entry["output_dim"] == 2048


@pytest.mark.parametrize("name", ENTRIES)
def test_preprocessing_is_the_librarys(name: str) -> None:
    entry = ENTRIES[name]
    expected: Preprocessing | None = CLIP
    if entry["source"] == "torchvision":
        model = LIBRARIES["torchvision"].choose(NETWORKS[name])
        expected = Preprocessing.from_torchvision(
            torchvision.models.get_model_weights(model)[entry["weights"]].transforms()
        )
    elif entry["source"] == "timm":
        model = LIBRARIES["timm"].choose(NETWORKS[name])
        config = timm.get_pretrained_cfg(f"{model}.{entry['weights']}", allow_unregistered=False)
        _, side, _ = config.input_size
        resize = math.floor(side / config.crop_pct)
        assert config.crop_mode == "center"
        expected = Preprocessing(resize, side, config.mean, config.std, config.interpolation)
    assert read_preprocessing(entry) == expected
    assert entry["input_size"] == [entry["preprocess"]["crop"]] * 2


def test_weights_are_known() -> None:
    for name in AVAILABLE:
        library = LIBRARIES[ENTRIES[name]["source"]]
        assert ENTRIES[name]["weights"] in library.identifiers(library.choose(NETWORKS[name]))


QUICK = ("mobilenet_v2", "vit_small_patch16_224")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in AVAILABLE]
)
def test_width(name: str) -> None:
    entry = ENTRIES[name]
    network, _ = build(replace(NETWORKS[name], weights=None))
    tap = Tap(entry["layer"], entry["embedding"], entry["output_dim"])
    model = LayerEmbedding(name, network, [tap], read_preprocessing(entry), entry.get("forward_args"))
    photos = torch.randint(256, (2, 3, *entry["input_size"]), dtype=torch.uint8)
    rows = model(photos)
    assert rows.shape == (2, entry["output_dim"])
    assert rows.isfinite().all()
    assert not torch.equal(rows[0], rows[1])


def test_embedded_registry_needs_no_download() -> None:
    registry = read_registry(ROOT / "configs/registry/embedded.json")
    for entry in registry.entries.values():
        assert entry.weights is None or (registry.path.parent / entry.weights).is_file()
