"""Data sets in the forms of Hugging Face's library, built here and read without network."""

import hashlib
import pickle
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets
import numpy as np
import pytest

from headstart.datamodules import HuggingFaceDataset
from headstart.datamodules.photos.folder_listing import STRAY
from headstart.datamodules.photos.hugging_face_files import find_files
from headstart.datamodules.photos.hugging_face_photos import HuggingFacePhotos
from headstart.tests.material.photo_folders import lay_out, refusal
from headstart.tests.material.shards import png, reds, write_shard

Build = Callable[..., Path]
LABELLED = {"image": "image", "labels": "label"}


@pytest.fixture(autouse=True)
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)


def make(count: int, columns: Mapping[str, str]) -> datasets.Dataset:
    """Build one split whose picture i has red i, and the classes cat and dog in turn."""
    classes = datasets.ClassLabel(names=["cat", "dog"])
    kinds = {
        "image": (datasets.Image(), [{"bytes": png(number % 256), "path": None} for number in range(count)]),
        "label": (classes, [number % 2 for number in range(count)]),
        "text": (datasets.Value("string"), ["word"] * count),
        "unlabelled": (classes, [-1] * count),
    }
    features = datasets.Features({name: kinds[kind][0] for name, kind in columns.items()})
    return datasets.Dataset.from_dict({name: kinds[kind][1] for name, kind in columns.items()}, features)


@pytest.fixture
def save(tmp_path: Path) -> Build:
    def build(columns: Mapping[str, str] = LABELLED, form: str = "disk", **splits: int) -> Path:
        made, folder = {name: make(count, columns) for name, count in splits.items()}, tmp_path / "pets"
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


def test_digests_are_those_of_the_files_and_parts_are_small(save: Build) -> None:
    source = HuggingFaceDataset(str(save(form="parquet", train=3000)))
    assert source.pictures().digests() == [hashlib.sha256(png(number % 256)).hexdigest() for number in range(3000)]
    train, validation = source.both()
    digests = train.digests()
    for photos in (source.pictures(), train, validation):
        whole = reds(photos)
        for chosen in (np.arange(1, 597, 7), np.array([500, 3, 3])):
            part = photos.part(chosen)
            pickled = pickle.dumps(part)
            assert len(pickled) < 20_000
            come = pickle.loads(pickled)
            assert reds(come) == [whole[index] for index in chosen.tolist()]
            assert [*come.names] == [photos.names[index] for index in chosen.tolist()]
            assert come.digests() == [photos.digest(index) for index in chosen.tolist()]
            assert come.decoding == photos.decoding
    assert train.digests() == digests


def photos_in(folder: Path, *names: str) -> str:
    """Write pictures whose red is their number."""
    for red, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(png(red))
    return str(folder)


def test_photos_in_class_folders_are_all_read_whatever_they_are_called(tmp_path: Path) -> None:
    words = [
        f"{kind}/{word}_{n}[a].png" for kind in ("plane", "train") for word in ("train", "test", "x") for n in (1, 2)
    ]
    photos = HuggingFaceDataset(photos_in(tmp_path / "vehicles", *words)).pictures()
    assert sorted(reds(photos)) == list(range(12))

    source = HuggingFaceDataset(str(tmp_path / "vehicles"), validation_fraction=0.5)
    train, validation = source.train(), source.validation()
    assert train.classes == validation.classes == ("plane", "train")
    for part in (train, validation):
        assert part.labels.tolist() == [int(red >= 6) for red in reds(part)]
    assert sorted(reds(train) + reds(validation)) == list(range(12))


def test_photos_by_split_and_class(tmp_path: Path) -> None:
    names = [f"{split}/{kind}/{n}.png" for split in ("train", "test") for kind in ("train", "ship") for n in range(3)]
    source = HuggingFaceDataset(photos_in(tmp_path / "both", *names))
    assert source.train().classes == ("ship", "train")
    assert sorted(reds(source.train())) == list(range(6))
    assert list(source.validation().names) == [f"test/{number}" for number in range(6)]
    lay_out(tmp_path / "both", "train/1.png", "0.png", "notes.txt", "test/clip.mp4", "info.md", ".hidden")
    source = HuggingFaceDataset(str(tmp_path / "both"))
    train, validation = source.both()
    assert (sorted(reds(train)), len(validation)) == ([*range(6)], 6)
    others = {"notes.txt": ".txt", "test/clip.mp4": ".mp4", "info.md": ".md"}
    assert train.left_out == validation.left_out == {**others, "train/1.png": STRAY, "0.png": STRAY}
    assert source.pictures().left_out == train.left_out


def test_photos_that_the_package_passes_over_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = photos_in(tmp_path / "few", "a/1.png", "a/2.png", "b/3.png")
    load = datasets.load_dataset
    monkeypatch.setattr(
        datasets,
        "load_dataset",
        lambda *given, **options: {split: dataset.select([0]) for split, dataset in load(*given, **options).items()},
    )
    start = f"path: {folder} has 3 photos, of which the package datasets reads 1"
    refusal(HuggingFaceDataset(folder).train, start=start)


def test_files_on_the_hub_that_the_package_passes_over_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [SimpleNamespace(rfilename=name) for name in ("README.md", "a/train_1.png", "a/2.png", "b/3.png")]
    about = SimpleNamespace(card_data={"configs": None}, siblings=files)
    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", lambda self, path, revision: about)
    used = {"train": ["hf://datasets/me/few@0/a/train_1.png"]}
    builder = SimpleNamespace(config=SimpleNamespace(data_files=used))
    monkeypatch.setattr(datasets, "load_dataset_builder", lambda *given, **options: builder)
    monkeypatch.setattr(datasets, "load_dataset", lambda *given, **options: {"train": None})
    message = refusal(HuggingFaceDataset("me/few").prepare, start="path: me/few has 3 files ending in .png, of which ")
    assert "would use 1, by words" in message
    about.card_data = {"configs": [{"config_name": "default"}]}
    HuggingFaceDataset("me/few").prepare()


def test_tar_shards(tmp_path: Path) -> None:
    for name, numbers in (("train-1", range(4)), ("train-2", range(4, 8)), ("other", range(8, 10))):
        write_shard(tmp_path / "shards" / f"{name}.tar", numbers)
    shards = str(tmp_path / "shards")
    source = HuggingFaceDataset("webdataset", {"train": f"{shards}/train-*.tar", "test": [f"{shards}/other.tar"]})
    assert source.name == "shards"
    assert (reds(source.train()), reds(source.validation())) == ([*range(8)], [8, 9])
    assert source.train().classes == ("0", "1")
    assert source.train().labels.tolist() == [0, 1] * 4
    assert source.train().digest(2) == hashlib.sha256(png(2)).hexdigest()
    start = f"path: 1 of 3 files in {shards} have no split in their names, other.tar first"
    refusal(HuggingFaceDataset(shards).train, start=start)


def test_labels_of_other_types_than_class_label(tmp_path: Path) -> None:
    table = {"photo": [png(red) for red in range(4)], "label": [10, 9, 10, 9], "about": [{"kind": k} for k in "abab"]}
    made = datasets.Dataset.from_dict(table)
    made.to_parquet(str(tmp_path / "photos.parquet"))
    source = HuggingFaceDataset("parquet", str(tmp_path / "*.parquet"), validation_fraction=0.5)
    assert source.train().classes == ("9", "10")
    assert sorted(reds(source.train()) + reds(source.validation())) == list(range(4))
    assert HuggingFaceDataset(str(tmp_path), label="about.kind", validation_fraction=0.5).train().classes == ("a", "b")
    for label, words in (("kind", "has no column 'kind'"), ("about", "column 'about' has a value of type dict")):
        assert words in refusal(HuggingFaceDataset(str(tmp_path), label=label).train, start="label: ")


def test_splits_are_found_or_named(save: Build) -> None:
    folder = str(save(train=6, test=4, validation=2, extra=8))
    source = HuggingFaceDataset(folder)
    assert (len(source.train()), len(source.validation())) == (6, 2)
    source = HuggingFaceDataset(folder, train_split="extra", validation_split="test")
    assert (len(source.train()), len(source.validation())) == (8, 4)
    assert sorted(reds(HuggingFaceDataset(folder).pictures())) == sorted([*range(6), *range(4), *range(2), *range(8)])
    for option, split, words in (
        ("train_split", "all", f"{folder} has no split 'all'; it has train, test, validation, extra"),
        ("validation_split", "train", "'train' is the training split"),
    ):
        refusal(HuggingFaceDataset(folder, **{option: split}).both, start=f"{option}: {words}")  # type: ignore[arg-type]


def test_unlabelled_splits_are_passed_over(tmp_path: Path) -> None:
    splits = {"train": make(20, LABELLED), "validation": make(4, {"image": "image", "labels": "unlabelled"})}
    labelled = {**splits, "test": make(6, LABELLED)}
    for name, made in (("part", splits), ("whole", labelled)):
        datasets.DatasetDict(made).save_to_disk(str(tmp_path / name))
    assert list(HuggingFaceDataset(str(tmp_path / "whole")).validation().names) == [f"test/{i}" for i in range(6)]
    assert len(HuggingFaceDataset(str(tmp_path / "whole")).train()) == 20
    held = HuggingFaceDataset(str(tmp_path / "part"))
    assert (len(held.train()), len(held.validation())) == (16, 4)
    named = HuggingFaceDataset(str(tmp_path / "part"), validation_split="validation")
    assert "photos without a class in its split 'validation'" in refusal(named.both, start="validation_split: ")


def test_columns_are_named_where_there_are_several(save: Build, tmp_path: Path) -> None:
    two = {"photo": "image", "mask": "image", "kind": "label", "colour": "label", "words": "text"}
    folder = str(save(two, train=4, test=2))
    source = HuggingFaceDataset(folder, image="mask", label="colour")
    assert reds(source.train()) == [0, 1, 2, 3]
    assert source.train().labels.tolist() == [0, 1, 0, 1]
    wrong: list[tuple[dict[str, Any], str, str]] = [
        ({"label": "kind"}, "image", "not one column to take; its columns of type Image are photo, mask"),
        ({"image": "mask"}, "label", "its columns of type ClassLabel are kind, colour"),
        ({"image": "words", "label": "kind"}, "image", "no column 'words'; its columns of type"),
    ]
    for options, option, words in wrong:
        assert words in refusal(HuggingFaceDataset(folder, **options).train, start=f"{option}: ")
    make(4, {"image": "image", "words": "text"}).save_to_disk(str(tmp_path / "none"))
    message = refusal(HuggingFaceDataset(str(tmp_path / "none")).train, start="label: ")
    assert "not one column to take; it has no column of type Class" in message


def test_what_cannot_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = "path: nobody/nothing cannot be loaded ("
    assert "give a name on the Hugging Face Hub" in refusal(HuggingFaceDataset("nobody/nothing").prepare, start=start)
    start = f"path: {tmp_path} must hold either Parquet files, tar shards or photos, and it holds neither"
    refusal(HuggingFaceDataset(str(tmp_path)).prepare, start=start)
    monkeypatch.setitem(sys.modules, "datasets", None)
    message = refusal(HuggingFaceDataset(str(tmp_path)).prepare, start="path: ")
    assert message.endswith("pip install 'headstart[datasets]'")


def test_a_broken_photo_is_an_os_error(tmp_path: Path) -> None:
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])})
    cells = [{"bytes": b"no photo", "path": None}, None, {"bytes": None, "path": str(tmp_path / "gone.png")}]
    made = datasets.Dataset.from_dict({"image": cells, "label": [0, 1, 1]}, features)
    photos = HuggingFacePhotos(made, "image", [0, 1, 1], ("cat", "dog"), {"train": 3})
    for index in range(3):
        with pytest.raises(OSError, match=r"no picture of a known format|it has no bytes|No such file"):
            photos.read(index)
    assert "gone.png cannot be read" in refusal(partial(photos.digest, 2))


def test_files_that_may_be_of_another_split_are_not_trained_on(tmp_path: Path) -> None:
    for number, names in enumerate(
        (
            ("data/train/0.parquet", "data/test/0.parquet"),
            ("pets-train.parquet", "pets-test.parquet"),
            ("Training/a/0.png", "Testing/a/0.png"),
            ("train/a/0.png", "test/a/0.png", "extra/a/0.png"),
        )
    ):
        lay_out(tmp_path / str(number), *names)
        message = refusal(partial(find_files, tmp_path / str(number)), start="path: ")
        assert "may be a split (test" in message
        assert "; name the files of each split" in message
