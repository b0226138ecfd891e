"""A registry's entry as the backbone of a stream: the network that the evaluation commands run."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from headstart.contract.documents import read_registry
from headstart.datamodules.feature_stream import FeatureStream
from headstart.datamodules.rows import find
from headstart.datamodules.sample_stream import SampleStream
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.modules.networks.build import build
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.output.errors import UserError
from headstart.store.feature_table import StoredRows
from headstart.tests.material.arena import make_entry

SetUp = Callable[..., SampleStream]
UNNAMED = {"width_mult": 0.25, "num_classes": 60}
NARROWED = {"weights": "narrow.safetensors"}
NARROW = {"name": "mobilenet_v2", "width_mult": 0.25}


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    """Write a registry with weights from a file, random ones, and entries that can be no backbone."""
    torch.manual_seed(0)
    network = BackboneSpec("mobilenet_v2", "random", {"width_mult": 0.25, "num_classes": 7}).network(5)
    save_file(build(network)[0].state_dict(), tmp_path / "narrow.safetensors")
    entries = [
        make_entry("from file", "features.18", "pool", 1280, **NARROWED, model_parameters=NARROW),
        make_entry("drawn", "classifier", "flatten", 1280, model_parameters=NARROW),
        make_entry("halfway", "features.6", "pool", 8, **NARROWED, model_parameters=NARROW),
        make_entry("clip", "visual", "flatten", 8, source="open_clip"),
        make_entry(
            "what is called mobilenet_v2 elsewhere", "classifier", "flatten", 1280, **NARROWED, model_parameters=UNNAMED
        ),
        make_entry("scaled", "classifier", "flatten", 1280, model_parameters=NARROW, forward_args={"scale": 2}),
    ]
    path = tmp_path / "registry.json"
    path.write_text(json.dumps({"contract_version": "1.0", "models": entries}))
    return path


@pytest.mark.parametrize("entry", ["from file", "what is called mobilenet_v2 elsewhere"])
def test_features_are_those_of_the_entry_and_computed_once(
    entry: str, set_up: SetUp, registry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = []

    def count(*args: Any) -> StoredRows:
        result = find(*args)
        counts.append(result.computed)
        return result

    monkeypatch.setattr("headstart.datamodules.sample_stream.find", count)
    by_entry = set_up(FeatureStream, backbone=BackboneSpec(entry, registry=str(registry)))
    weights = registry.parent / "narrow.safetensors"
    by_name = set_up(
        FeatureStream,
        backbone=BackboneSpec("mobilenet_v2", str(weights), {"width_mult": 0.25}, Preprocessing(32, 32)),
    )
    assert counts == [24, 12, 0, 0]
    assert by_entry.decisive() == by_name.decisive()
    assert torch.equal(by_entry.train_inputs, by_name.train_inputs)
    heads = [stream.start().source_head for stream in (by_entry, by_name)]
    assert [head.shape[0] for head in heads if head is not None] == [7, 7]
    assert torch.equal(*heads)  # type: ignore[arg-type]
    protocol = {**by_entry.describe(), **by_entry.decisive()}
    assert protocol["backbone"] == entry
    assert protocol["weights"] == str(weights)
    assert protocol["weights_sha256"] == by_name.decisive()["weights_sha256"]


@pytest.mark.parametrize("seed", [0, 4])
def test_random_weights_are_those_of_the_evaluation(set_up: SetUp, registry: Path, seed: int) -> None:
    stream = set_up(FeatureStream, backbone=BackboneSpec("drawn", registry=str(registry)), seed=seed)
    network, _ = build(read_registry(registry).networks(["drawn"], seed)["drawn"])
    expected = {name: value for name, value in network.state_dict().items() if not name.startswith("classifier")}
    state = stream.backbone.network.state_dict()
    assert state.keys() == expected.keys()
    assert all(torch.equal(state[name], expected[name]) for name in expected)
    assert stream.decisive()["random_weights"]
    assert stream.describe()["weights"] == "random"
    assert stream.start().source_head is None


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"name": "from flie"}, "data.backbone.name: 'from flie' is not an entry of '.*'; it has from file"),
    ({"name": "drawn", "preprocessing": Preprocessing(64, 64)}, "data.backbone.preprocessing: not allowed with a reg"),
    ({"name": "clip"}, "'clip' is of source 'open_clip'; entries of torchvision and timm are backbones"),
    ({"name": "halfway"}, "data.backbone.name: 'halfway' takes embeddings at the layer 'features.6'"),
    ({"name": "scaled"}, "data.backbone.name: 'scaled' has forward_args"),
    ({"name": "drawn", "registry": "absent.json"}, "data.backbone.registry: "),
]


def test_mistakes(set_up: SetUp, registry: Path) -> None:
    for options, message in MISTAKES:
        with pytest.raises(UserError, match=message):
            set_up(FeatureStream, backbone=BackboneSpec(**{"registry": str(registry), **options}))
    (registry.parent / "narrow.safetensors").unlink()
    with pytest.raises(UserError, match=r"^data\.backbone: model 'from file': weights: there is no file '.*narrow"):
        set_up(FeatureStream, backbone=BackboneSpec("from file", registry=str(registry)))
