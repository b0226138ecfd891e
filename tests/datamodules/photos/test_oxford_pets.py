"""Oxford-IIIT Pet in torchvision's layout."""

from pathlib import Path

import pytest
from PIL import Image
from torchvision.datasets import OxfordIIITPet

from headstart.datamodules import OxfordPets
from headstart.tests.material.photo_folders import refusal

SPLITS = {
    "trainval": [("Abyssinian_100", 1, 1, 1), ("american_bulldog_1", 2, 2, 1), ("Bengal_2", 6, 1, 3)],
    "test": [("american_bulldog_9", 2, 2, 1), ("Abyssinian_7", 1, 1, 1)],
}


def lay_out(folder: Path) -> None:
    (folder / "images").mkdir(parents=True)
    (folder / "annotations").mkdir()
    for split, photos in SPLITS.items():
        lines = [" ".join(map(str, photo)) for photo in photos]
        (folder / "annotations" / f"{split}.txt").write_text("\n".join(lines) + "\n")
        for number, photo in enumerate(photos):
            Image.new("RGB", (6, 4), (0, 0, 80 * number)).save(folder / "images" / f"{photo[0]}.jpg")


def test_listing_is_torchvision_s_and_decodes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The default root.
    monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path))
    root = tmp_path / "datasets" / "torchvision" / "OxfordIIITPet"
    lay_out(root / "oxford-iiit-pet")
    source = OxfordPets()
    train, validation = source.train(), source.validation()
    assert train.classes == validation.classes == ("Cat", "Dog")
    assert list(train.names) == [f"images/{photo[0]}.jpg" for photo in SPLITS["trainval"]]
    assert (train.labels.tolist(), validation.labels.tolist()) == ([0, 1, 0], [1, 0])
    dataset = OxfordIIITPet(root, split="trainval", target_types="binary-category")
    for index, (photo, label) in enumerate(dataset[i] for i in range(len(dataset))):
        assert (label, photo.tobytes()) == (train.labels[index], train.read(index).tobytes())
    for path in (root / "oxford-iiit-pet" / "images").iterdir():
        path.write_bytes(b"")
    assert len(OxfordPets().train()) == 3


def test_missing_or_incomplete(tmp_path: Path) -> None:
    refusal(OxfordPets(str(tmp_path / "none")).train, start="root: there is no folder ")
    source = OxfordPets(str(tmp_path))
    source.prepare()
    assert "download=true" in refusal(source.train, start="root: torchvision finds no complete OxfordIIITPet in ")
    lay_out(tmp_path / "oxford-iiit-pet")
    (tmp_path / "oxford-iiit-pet" / "images" / "Bengal_2.jpg").unlink()
    assert "download=true" in refusal(source.train, start="root: torchvision finds no complete OxfordIIITPet in ")
