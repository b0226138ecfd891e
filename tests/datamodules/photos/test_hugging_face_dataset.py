"""Data sets in the forms of Hugging Face's library, built here and read without network."""

import hashlib
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
from PIL import Image

from headstart.datamodules import HuggingFaceDataset
from headstart.datamodules.photos.hugging_face_dataset import HuggingFacePhotos
from headstart.output.errors import UserError
from headstart.tests.material.shards import png

Build = Callable[..., Path]


@pytest.fixture(autouse=True)
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)


def make(files: Path, split: str, count: int, columns: Mapping[str, str]) -> datasets.Dataset:
    """Build one split whose picture i has red i, and the classes cat and dog in turn."""
    files.mkdir(parents=True, exist_ok=True)
    paths = [files / f"{split}{number}.png" for number in range(count)]
    for number, path in enumerate(paths):
        Image.new("RGB", (6, 4), (number, 0, 0)).save(path)
    kinds = {
        "image": (datasets.Image(), [str(path) for path in paths]),
        "label": (datasets.ClassLabel(names=["cat", "dog"]), [number % 2 for number in range(count)]),
        "text": (datasets.Value("string"), ["word"] * count),
        "unlabelled": (datasets.ClassLabel(names=["cat", "dog"]), [-1] * count),
    }
    features = datasets.Features({name: kinds[kind][0] for name, kind in columns.items()})
    return datasets.Dataset.from_dict({name: kinds[kind][1] for name, kind in columns.items()}, features)


@pytest.fixture
def save(tmp_path: Path) -> Build:
    def build(
        columns: Mapping[str, str] = {"image": "image", "labels": "label"}, form: str = "disk", **splits: int
    ) -> Path:
        made = {name: make(tmp_path / "files", name, count, columns) for name, count in splits.items()}
        folder = tmp_path / "pets"
        if form == "disk":
            datasets.DatasetDict(made).save_to_disk(str(folder))
        elif form == "one split on disk":
            made["train"].save_to_disk(str(folder))
        else:
            folder.mkdir()
            for name, dataset in made.items():
                dataset.to_parquet(str(folder / f"{name}-00000-of-00001.parquet"))
        return folder

    return build


def reds(photos: Any) -> list[int]:
    return [photos.read(i).getpixel((0, 0))[0] for i in range(len(photos))]


@pytest.mark.parametrize("form", ["disk", "one split on disk", "parquet"])
def test_one_split_is_split_by_seed(save: Build, form: str) -> None:
    source = HuggingFaceDataset(str(save(form=form, train=20)))
    source.prepare()
    train, validation = source.train(), source.validation()
    assert source.name == "pets"
    assert train.classes == ("cat", "dog")
    assert np.bincount(train.labels).tolist() == [8, 8]
    assert np.bincount(validation.labels).tolist() == [2, 2]
    assert sorted(reds(train) + reds(validation)) == list(range(20))
    for photos in (train, validation):
        assert photos.labels.tolist() == [red % 2 for red in reds(photos)]


def test_digests_are_those_of_the_files(save: Build, tmp_path: Path) -> None:
    photos = HuggingFaceDataset(str(save(form="parquet", train=4, test=2))).train()
    files = [tmp_path / "files" / f"train{number}.png" for number in range(4)]
    assert photos.digests() == [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
    assert pickle.loads(pickle.dumps(photos)).read(3).getpixel((0, 0)) == (3, 0, 0)


@pytest.mark.parametrize("form", ["disk", "parquet"])
def test_parts_are_small(tmp_path: Path, form: str) -> None:
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["even", "odd"])})
    cells = [{"bytes": png(number % 256), "path": None} for number in range(3000)]
    made = datasets.Dataset.from_dict({"image": cells, "label": [number % 2 for number in range(3000)]}, features)
    folder = tmp_path / "pets"
    folder.mkdir()
    if form == "disk":
        made.save_to_disk(str(folder))
    else:
        made.to_parquet(str(folder / "train.parquet"))
    source = HuggingFaceDataset(str(folder))
    train, validation = source.both()
    digests = train.digests()
    for photos in (source.pictures(), train, validation):
        assert photos.has_small_parts
        whole = reds(photos)
        for chosen in (np.arange(100, 200), np.arange(1, 597, 7), np.array([500, 3, 3])):
            part = photos.part(chosen)
            pickled = pickle.dumps(part)
            assert len(pickled) < 20_000
            come = pickle.loads(pickled)
            assert reds(come) == [whole[index] for index in chosen.tolist()]
            assert [*come.names] == [photos.names[index] for index in chosen.tolist()]
            assert come.digests() == [photos.digest(index) for index in chosen.tolist()]
            assert come.decoding == photos.decoding
    assert train.digests() == digests


def test_folder_of_photos(tmp_path: Path) -> None:
    for split, count in (("train", 4), ("test", 2)):
        for kind in ("cat", "dog"):
            folder = tmp_path / "pets" / split / kind
            folder.mkdir(parents=True)
            for number in range(count):
                Image.new("RGB", (6, 4), (number, 9, 9)).save(folder / f"{number}.png")
    source = HuggingFaceDataset(str(tmp_path / "pets"))
    assert source.train().labels.tolist() == [0] * 4 + [1] * 4
    assert sorted(reds(source.train())) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert list(source.validation().names) == ["test/0", "test/1", "test/2", "test/3"]


def test_splits_are_found_or_named(save: Build) -> None:
    folder = str(save(train=6, test=4, validation=2, extra=8))
    source = HuggingFaceDataset(folder)
    assert (len(source.train()), len(source.validation())) == (6, 2)
    source = HuggingFaceDataset(folder, train_split="extra", validation_split="test")
    assert (len(source.train()), len(source.validation())) == (8, 4)
    with pytest.raises(
        UserError, match=r"^train_split: .*pets has no split 'all'; it has train, test, validation, extra"
    ):
        HuggingFaceDataset(folder, train_split="all").train()
    with pytest.raises(UserError, match=r"^validation_split: 'train' is the training split"):
        HuggingFaceDataset(folder, validation_split="train").validation()
    with pytest.raises(UserError, match=r"^validation_split: .*pets has no split 'none'"):
        HuggingFaceDataset(folder, validation_split="none").validation()


def test_unlabelled_splits_are_passed_over(save: Build, tmp_path: Path) -> None:
    columns = {"image": "image", "labels": "label"}
    unlabelled = make(tmp_path / "files", "test", 4, {"image": "image", "labels": "unlabelled"})
    splits = {"train": make(tmp_path / "files", "train", 20, columns), "validation": unlabelled}
    labelled = {**splits, "test": make(tmp_path / "files", "dev", 6, columns)}
    for name, made in (("part", splits), ("whole", labelled)):
        datasets.DatasetDict(made).save_to_disk(str(tmp_path / name))
    assert list(HuggingFaceDataset(str(tmp_path / "whole")).validation().names) == [f"test/{i}" for i in range(6)]
    assert len(HuggingFaceDataset(str(tmp_path / "whole")).train()) == 20
    held = HuggingFaceDataset(str(tmp_path / "part"))
    assert (len(held.train()), len(held.validation())) == (16, 4)
    with pytest.raises(UserError, match=r"^validation_split: .* photos without a class in its split 'validation'"):
        HuggingFaceDataset(str(tmp_path / "part"), validation_split="validation").validation()


TWO = {"photo": "image", "mask": "image", "kind": "label", "colour": "label", "words": "text"}


@pytest.mark.parametrize(
    ("columns", "options", "expected"),
    [
        (TWO, {"label": "kind"}, "image: .* not one column to take; its columns of type Image are photo, mask"),
        (TWO, {"image": "mask"}, "label: .* its columns of type ClassLabel are kind, colour"),
        (TWO, {"image": "words", "label": "kind"}, "image: .* no column 'words' of type Image; its columns of type"),
        (
            {"image": "image", "words": "text"},
            {},
            "label: .* not one column to take; it has no column of type ClassLabel",
        ),
        ({"image": "image", "kind": "unlabelled"}, {}, "train_split: .* photos without a class in its split 'train'"),
    ],
)
def test_columns_that_do_not_fit(
    save: Build, columns: Mapping[str, str], options: dict[str, Any], expected: str
) -> None:
    source = HuggingFaceDataset(str(save(columns, train=4)), **options)
    with pytest.raises(UserError, match=f"^{expected}"):
        source.train()


def test_columns_can_be_named(save: Build) -> None:
    source = HuggingFaceDataset(str(save(TWO, train=4, test=2)), image="mask", label="colour")
    assert reds(source.train()) == [0, 1, 2, 3]
    assert source.train().labels.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("path", ["microsoft/cats_vs_dogs", "nobody/nothing", "no such name!"])
def test_offline_is_one_line(path: str) -> None:
    with pytest.raises(UserError) as caught:
        HuggingFaceDataset(path).prepare()
    message = str(caught.value)
    assert message.startswith(f"path: {path} cannot be loaded (")
    assert message.endswith("give a name on the Hugging Face Hub or a folder")
    assert "\n" not in message


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^path: .* cannot be loaded"):
        HuggingFaceDataset(str(tmp_path)).prepare()


def test_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(UserError, match=r"^path: .*pip install 'headstart\[datasets\]'"):
        HuggingFaceDataset(str(tmp_path)).prepare()


def test_a_broken_photo_is_an_os_error(tmp_path: Path) -> None:
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])})
    cells = [{"bytes": b"no photo", "path": None}, None, {"bytes": None, "path": str(tmp_path / "gone.png")}]
    made = datasets.Dataset.from_dict({"image": cells, "label": [0, 1, 1]}, features)
    photos = HuggingFacePhotos(made, "image", "label", {"train": 3})
    for index in range(3):
        with pytest.raises(OSError, match=r"no picture of a known format|it has no bytes|No such file"):
            photos.read(index)
    with pytest.raises(UserError, match=r"gone\.png cannot be read"):
        photos.digest(2)
