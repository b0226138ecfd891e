"""Features as an array: those that the network gives, and mistakes in one line."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import headstart
from headstart.datamodules import DrawnPets
from headstart.modules.networks.backbone import build_backbone
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.tests.material.photo_folders import refusal


def test_they_are_what_the_network_gives(tmp_path: Path) -> None:
    picture = DrawnPets(train_size=2).train().read(0)
    picture.save(tmp_path / "1.png")
    backbone, pixels = build_backbone(BackboneSpec(weights="embedded").network(0)), np.array(picture)
    assert pixels.shape == (64, 64, 3)
    with torch.no_grad():
        expected = backbone(torch.from_numpy(pixels).permute(2, 0, 1)[None])
    embedded = headstart.embed([tmp_path / "1.png"], BackboneSpec(weights="embedded"), precision="float32")
    np.testing.assert_allclose(embedded, expected.numpy(), rtol=1e-3, atol=1e-4)


def test_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    embedded = {"weights": "embedded"}
    mistakes: list[tuple[list[str], Any, str]] = [
        ([], "mobilenet_v2", "photos: there are none in"),
        (["absent.png"], embedded, "absent.png cannot be read"),
        ([__file__], embedded, "test_embedding.py' cannot be decoded: no picture of a known format"),
        (["absent.png"], {"wieghts": "embedded"}, "backbone.wieghts: there is no such option (closest"),
        (["absent.png"], {"name": "resnet18", **embedded}, "'resnet18' given, but the weights embedded are of"),
    ]
    for photos, backbone, words in mistakes:
        assert words in refusal(partial(headstart.embed, photos, backbone))
