"""Photos in batches: decoded once, and what is said of bad ones."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from headstart.datamodules import ClassFolders
from headstart.datamodules.photo_batches import PhotoBatches, TargetBatches
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.output.errors import UserError

SMALL = Preprocessing(32, 32)
CPU = torch.device("cpu")


def make(root: Path, kind: type[PhotoBatches] = PhotoBatches, **options: Any) -> Any:
    """Return batches of a folder, whose photos are loaded."""
    batches = kind(photos=ClassFolders(str(root)), backbone=BackboneSpec(), num_workers=0, **options)
    batches.prepare_data()
    batches.setup("fit")
    batches.load_photos(SMALL, CPU)
    return batches


def test_photos_are_fed_as_they_are_prepared_and_decoded_once(
    photo_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = make(photo_folder, batch_size=10)
    photos = ClassFolders(str(photo_folder)).train()
    expected = {SMALL.prepare(photos.read(i)).tobytes(): int(photos.labels[i]) for i in range(len(photos))}
    fed = [(inputs, labels) for inputs, labels in batches.train_dataloader()]
    assert [len(labels) for _, labels in fed] == [10, 10, 4]
    labels_by_photo = {
        photo.permute(1, 2, 0).numpy().tobytes(): int(label)
        for inputs, labels in fed
        for photo, label in zip(inputs, labels, strict=True)
    }
    assert labels_by_photo == expected
    (validation,) = batches.val_dataloader()
    assert torch.equal(validation[1], torch.from_numpy(ClassFolders(str(photo_folder)).validation().labels))

    def refuse(*_: object) -> Image.Image:
        raise AssertionError("decoded again")

    monkeypatch.setattr("headstart.datamodules.photos.photo_source.decode", refuse)
    assert torch.equal(make(photo_folder).train_inputs, batches.train_inputs)


def test_bad_photos_and_copies_are_named_or_left_out(photo_folder: Path) -> None:
    # Equal files in two classes are no duplicates if neither is a photo.
    names = ["train/dark/3.jpg", "train/light/3.jpg"]
    for name in names:
        (photo_folder / name).write_bytes(b"no photo")
    with pytest.raises(UserError, match=r"data\.photos: 2 of 24 training photos cannot be decoded: train/dark/3.jpg"):
        make(photo_folder)
    batches = make(photo_folder, on_bad_image="skip")
    assert list(batches.unreadable) == names
    assert batches.train_labels.bincount().tolist() == [11, 11]

    shutil.copy(photo_folder / "train" / "dark" / "4.jpg", photo_folder / "validation" / "dark" / "copy.jpg")
    with pytest.raises(UserError, match=r"data\.photos: 1 photos are in both splits"):
        make(photo_folder, on_bad_image="skip")
    assert len(make(photo_folder, on_bad_image="skip", on_duplicates="keep").duplicates) == 1


def test_orderings_are_the_same_whichever_others_there_are(photo_folder: Path) -> None:
    def order(ordering: int, **options: Any) -> list[int]:
        batches = make(photo_folder, TargetBatches, batch_size=24, **options)
        batches.train_inputs = torch.arange(24)
        batches.choose(ordering)
        ((indices, _),) = batches.train_dataloader()
        return [int(index) for index in indices]

    assert order(2, orderings=3) == order(2, first_ordering=2)
    assert len({tuple(order(k)) for k in range(4)} | {tuple(order(0, seed=1))}) == 5


def test_equal_photos_are_not_on_both_sides_of_a_selection(photo_folder: Path) -> None:
    folder = photo_folder / "train"
    for path in sorted(folder.glob("*/[0-3].jpg")):
        for copy in range(3):
            shutil.copy(path, path.with_name(f"copy-{copy}-{path.name}"))
    # An unreadable photo before the others moves their indices.
    (min(folder.iterdir()) / "#.jpg").write_text("no photo")
    for seed in range(2):
        batches = make(photo_folder, TargetBatches, on_bad_image="skip", selection_share=0.25, seed=seed)
        batches.select()
        selected, trained = (
            {photo.numpy().tobytes() for photo in photos} for photos in (batches.selection_inputs, batches.train_inputs)
        )
        assert (len(selected), len(trained)) == (6, 18)
        assert not selected & trained
