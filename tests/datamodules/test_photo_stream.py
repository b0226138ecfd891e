"""The stream of photos feeds bytes, in one ordering per process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from datamodules.photo_stream import PhotoStream
from datamodules.photos.class_folders import ClassFolders
from datamodules.sample_stream import SampleStream
from modules.networks.backbone import BackboneSpec
from output.errors import UserError

SetUp = Callable[..., SampleStream]


@pytest.mark.parametrize("orderings", [0, 2, 20])
def test_one_ordering_per_process(photo_folder: Path, tiny: BackboneSpec, orderings: int) -> None:
    with pytest.raises(UserError, match=f"data.orderings: {orderings} asked for.*first_ordering"):
        PhotoStream(orderings=orderings, photos=ClassFolders(str(photo_folder)), backbone=tiny)


def test_photos_are_fed_as_bytes(set_up: SetUp, photo_folder: Path) -> None:
    stream = set_up(PhotoStream, first_ordering=3, batch_size=8)
    photos = ClassFolders(str(photo_folder)).train()
    prepared = [stream.backbone.preprocessing.prepare(photos.read(i)) for i in range(len(photos))]
    assert stream.train_inputs.dtype == torch.uint8
    assert torch.equal(stream.train_inputs, torch.stack(prepared))
    inputs, labels, _ = next(iter(stream.train_dataloader()))
    assert inputs.shape == (1, 8, 3, 32, 32)
    assert labels.shape == (1, 8)


def test_backbone_is_given_to_the_methods(set_up: SetUp) -> None:
    stream = set_up(PhotoStream)
    assert stream.start().backbone is stream.backbone
    assert stream.protocol()["inputs"] == "photos"
    assert stream.protocol()["picture_size"] == 32
    assert "feature_precision" not in stream.protocol()


def test_photos_do_not_depend_on_the_weights(set_up: SetUp, monkeypatch: pytest.MonkeyPatch) -> None:
    first = set_up(PhotoStream, seed=0)
    monkeypatch.setattr("datamodules.row_computation.ComputedRows", None)  # nothing is decoded again
    second = set_up(PhotoStream, seed=1)
    assert first.weights_digest != second.weights_digest
    assert np.array_equal(first.train_inputs.numpy(), second.train_inputs.numpy())
