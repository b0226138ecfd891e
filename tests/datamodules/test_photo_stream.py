"""The stream of photos feeds bytes, or activations at a freeze boundary."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from headstart.datamodules.photo_stream import PhotoStream
from headstart.datamodules.photos.class_folders import ClassFolders
from headstart.datamodules.sample_stream import SampleStream
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.trainable_backbone import TrainableBackbone
from headstart.output.errors import UserError
from headstart.tests.datamodules.conftest import TINY
from headstart.tests.material.prepared_pictures import stack

SetUp = Callable[..., SampleStream]
VIT = BackboneSpec("timm/vit_tiny_patch16_224", "random", {"img_size": 32}, Preprocessing(resize=32, crop=32))


def test_photos_and_the_backbone_are_given_to_the_methods(
    set_up: SetUp, photo_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = set_up(PhotoStream)
    photos = ClassFolders(str(photo_folder)).train()
    prepared = [stream.backbone.preprocessing.prepare(photos.read(i)) for i in range(len(photos))]
    assert torch.equal(stream.train_inputs, stack(prepared))
    backbone = stream.start().backbone
    assert isinstance(backbone, TrainableBackbone)
    assert backbone.network is stream.backbone.network
    # Photos do not depend on the weights: nothing is decoded again.
    monkeypatch.setattr("headstart.datamodules.row_tasks.RowComputer", None)
    other = set_up(PhotoStream, seed=1)
    assert stream.spec.loaded_sha256 != other.spec.loaded_sha256
    assert torch.equal(stream.train_inputs, other.train_inputs)


def features(stream: SampleStream, inputs: Tensor) -> Tensor:
    backbone = stream.start().backbone
    assert isinstance(backbone, TrainableBackbone)
    with backbone.folded():
        computed: Tensor = backbone(inputs)
    return computed


@pytest.mark.slow
@pytest.mark.parametrize(("boundary", "axes"), [("features.14", 3), ("blocks.10", 2)])
def test_a_tail_is_fed_what_the_whole_network_makes_of_photos(set_up: SetUp, boundary: str, axes: int) -> None:
    backbone = VIT if axes == 2 else TINY
    streams = {
        (start, precision): set_up(PhotoStream, backbone=backbone, trainable_from=start, precision=precision)
        for start in ("all", boundary)
        for precision in ("float32", "bfloat16")
    }
    expected = features(streams["all", "float32"], streams["all", "float32"].train_inputs)
    for (start, precision), stream in streams.items():
        inputs = stream.train_inputs
        assert stream.start().sample_dims == (3 if start == "all" else axes)
        if start != "all" and axes == 3:
            assert inputs.dtype == getattr(torch, precision)
            assert inputs.is_contiguous(memory_format=torch.channels_last) or inputs.stride(1) == 1
        result = features(stream, inputs)
        assert (result - expected).norm() < {"float32": 1e-5, "bfloat16": 2e-2}[precision] * expected.norm()
        assert torch.equal(stream.train_labels, streams["all", "float32"].train_labels)


def test_untrainable_networks_are_reported_before_photos_are_decoded(
    set_up: SetUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headstart.datamodules.row_tasks.RowComputer", None)
    trained: dict[str, Any] = {"batch_norm": "trained"}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"trainable_from": "feature.14"}, "trainable_from: the network has no module 'feature.14'; the closest"),
        ({"trainable_from": "features.0"}, "trainable_from: nothing comes before"),
        (trained, "batch_size: 1 is given, but data.batch_norm=trained .*; give 16 or more$"),
        ({**trained, "batch_size": 19}, "max_samples: 20 leaves one sample .* of 19, .*; give 19$"),
        ({**trained, "batch_size": 2, "backbone": VIT}, "batch_norm: trained is given, but the trained part has no"),
    ]
    for options, message in cases:
        with pytest.raises(UserError, match=f"^data.{message}"):
            set_up(PhotoStream, **options)


@pytest.mark.slow
def test_options_of_training_are_part_of_the_identity(set_up: SetUp) -> None:
    ways: list[dict[str, Any]] = [{}, {"batch_norm": "trained"}, {"dropout": True}, {"precision": "bfloat16"}]
    ways += [{"trainable_from": "features.14"}]
    streams = [set_up(PhotoStream, **{"batch_size": 4, "precision": "float32", **way}) for way in ways]
    assert len({json.dumps(stream.decisive(), sort_keys=True) for stream in streams}) == len(ways)
    for stream, way in zip(streams, ways, strict=True):
        backbone = stream.start().backbone
        assert isinstance(backbone, TrainableBackbone)
        assert (backbone.batch_norm, backbone.dropout) == (way.get("batch_norm", "frozen"), way.get("dropout", False))
        assert stream.validation_chunk == stream.decisive()["photos_at_once"]


@pytest.mark.slow
def test_an_evaluation_takes_as_many_activations_as_memory_is_there_for_photos(set_up: SetUp) -> None:
    # A pass of the whole network takes 196 photos of 32 x 32 pixels on a processor.
    for boundary in ("all", "features.14"):
        assert set_up(PhotoStream, trainable_from=boundary).validation_chunk == 196
    large = BackboneSpec("resnet18", "random", {}, Preprocessing(resize=224, crop=224))
    # 64 maps of 112 x 112, and 512 of 7 x 7; more than 32 gain nothing.
    for boundary, chunk in (("all", 4), ("layer1.1", 16), ("layer4.1", 32)):
        assert set_up(PhotoStream, backbone=large, trainable_from=boundary, max_samples=1).validation_chunk == chunk
