"""Features as an array: in the order of the pictures, those of comparisons, and computed once."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import headstart
from headstart.datamodules import DrawnPets
from headstart.modules.networks.backbone import build_backbone
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.output.errors import UserError

EMBEDDED = {"weights": "embedded"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write pictures of two classes, and one beside their folders."""
    photos = DrawnPets(train_size=6, validation_size=2).train()
    for index, name in enumerate(("top.png", "b/1.png", "b/2.png", "b/10.png", "a/x.png")):
        (tmp_path / "pictures" / name).parent.mkdir(parents=True, exist_ok=True)
        photos.read(index).save(tmp_path / "pictures" / name)
    return tmp_path / "pictures"


def arrays(folder: Path, *names: str) -> list[Any]:
    return [np.asarray(Image.open(folder / name)) for name in names]


def test_they_are_what_the_network_gives(folder: Path) -> None:
    backbone = build_backbone(BackboneSpec(weights="embedded").network(0))
    (picture,) = arrays(folder, "top.png")
    assert picture.shape == (64, 64, 3)
    with torch.no_grad():
        expected = backbone(torch.from_numpy(picture.copy()).permute(2, 0, 1)[None])
    embedded = headstart.embed([folder / "top.png"], BackboneSpec(weights="embedded"), precision="float32")
    np.testing.assert_allclose(embedded, expected.numpy(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("photos", "backbone", "message"),
    [
        ([], "mobilenet_v2", "photos: there are none in"),
        (["absent.png"], EMBEDDED, "absent.png cannot be read"),
        ([__file__], EMBEDDED, r"photos: .*test_embedding.py cannot be decoded \(no picture of a known format\)"),
        (["absent.png"], {"wieghts": "embedded"}, r"backbone.wieghts: there is no such option \(closest"),
        (
            ["absent.png"],
            {"name": "resnet18", "weights": "embedded"},
            "backbone.name: 'resnet18' given, but the weights are embedded",
        ),
    ],
)
def test_mistakes(photos: Any, backbone: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=message):
        headstart.embed(photos, backbone)
