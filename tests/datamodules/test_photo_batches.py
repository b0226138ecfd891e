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


def make(root: Path, **options: Any) -> PhotoBatches:
    batches = PhotoBatches(photos=ClassFolders(str(root)), backbone=BackboneSpec(), num_workers=0, **options)
    batches.prepare_data()
    batches.setup("fit")
    return batches


def test_photos_are_fed_as_they_are_prepared_and_decoded_once(
    photo_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = make(photo_folder, batch_size=10)
    batches.load_photos(SMALL, CPU)
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
    again = make(photo_folder)
    again.load_photos(SMALL, CPU)
    assert torch.equal(again.train_inputs, batches.train_inputs)


def test_equal_photos_are_not_on_both_sides_of_a_selection(photo_folder: Path) -> None:
    folder = photo_folder / "train"
    for path in sorted(folder.glob("*/[0-3].jpg")):
        for copy in range(3):
            shutil.copy(path, path.with_name(f"copy-{copy}-{path.name}"))
    # An unreadable photo before the others moves their indices.
    (min(folder.iterdir()) / "#.jpg").write_text("no photo")
    for seed in range(4):
        batches = TargetBatches(
            photos=ClassFolders(str(photo_folder)),
            backbone=BackboneSpec(),
            num_workers=0,
            on_bad_image="skip",
            selection_share=0.25,
            seed=seed,
        )
        batches.setup("fit")
        batches.load_photos(SMALL, CPU)
        batches.select()
        selected, trained = (
            {photo.numpy().tobytes() for photo in photos} for photos in (batches.selection_inputs, batches.train_inputs)
        )
        assert (len(selected), len(trained)) == (6, 18)
        assert not selected & trained


def test_a_share_that_selects_too_few_photos_is_refused_before_they_are_loaded(photo_folder: Path) -> None:
    photos = ClassFolders(str(photo_folder))
    for share, selected in ((0.02, 0), (0.05, 1), (1, 24)):
        batches = TargetBatches(photos=photos, backbone=BackboneSpec(), selection_share=share)
        with pytest.raises(
            UserError, match=rf"^data.selection_share: {share} given, which selects {selected} of 24 training photos"
        ):
            batches.setup("fit")
