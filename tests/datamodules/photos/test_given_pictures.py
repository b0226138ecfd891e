"""Pictures as commands are given them: every form lists the same bytes in the same order."""

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.datamodules import DrawnPets, HuggingFaceDataset
from headstart.datamodules.photos.given_pictures import find_source, read_pictures
from headstart.tests.material.photo_folders import lay_out, refusal
from headstart.tests.material.shards import png, write_shard

REDS = range(6)


def write_all(root: Path) -> list[str]:
    """Write the pictures into a folder, in the order of their names."""
    root.mkdir()
    for red in REDS:
        (root / f"{red}.png").write_bytes(png(red))
    return [str(root / f"{red}.png") for red in REDS]


def in_folder(root: Path) -> Path:
    write_all(root / "pictures")
    return root / "pictures"


def in_csv(root: Path, header: str = "path", rest: str = "") -> str:
    write_all(root / "pictures")
    (root / "list.csv").write_text("\n".join([header, *(f"pictures/{red}.png{rest}" for red in REDS)]))
    return str(root / "list.csv")


def in_shards(root: Path) -> str:
    for shard in range(2):
        write_shard(root / f"{shard}.tar", REDS[3 * shard : 3 * shard + 3])
    return str(root / "*.tar")


FORMS: dict[str, Callable[[Path], object]] = {
    "a folder": in_folder,
    "a list": lambda root: write_all(root / "pictures"),
    "a CSV file": in_csv,
    "a CSV file with a hole": lambda root: in_csv(root, "path,label", ","),
    "shards": in_shards,
}


@pytest.mark.parametrize("form", FORMS)
def test_the_same_pictures_in_every_form(tmp_path: Path, form: str) -> None:
    pictures = read_pictures(FORMS[form](tmp_path), tmp_path / "cache")  # type: ignore[arg-type]
    assert [pictures.read(index).getpixel((0, 0)) for index in range(len(pictures))] == [(red, 0, 0) for red in REDS]
    assert [*pictures.digests()] == [hashlib.sha256(png(red)).hexdigest() for red in REDS]
    assert len({*pictures.names}) == len(REDS)


def test_arrays_and_photos() -> None:
    arrays = np.zeros((3, 4, 5, 3), np.uint8)
    assert read_pictures(arrays).read(2).size == (5, 4)
    assert len(read_pictures([*arrays])) == 3
    photos = DrawnPets(train_size=4).train()
    assert read_pictures(photos) is photos
    wrongs: list[Any] = [np.zeros((2, 4, 5), np.uint8), np.zeros((2, 4, 5, 3))]
    for wrong in wrongs:
        message = refusal(partial(read_pictures, wrong), start="photos: array 0 is ")
        assert message.endswith("; give uint8 [height, width, 3]")


MISTAKES = {
    "nowhere": "there is no folder {}; give one that holds pictures, or a file",
    "empty": "there are none in '{}'; give a folder of pictures, files or arrays",
    "imagenet": "there are none in '{}'; it holds folder without photos (2), photo in a",
    "nowhere.tar": "webdataset cannot be loaded (Unable to find '{}')",
    "notes.txt": "{} is no picture by its ending; give a folder, a picture, .csv, .tar or",
    "wrong.csv": "{} must have the columns path and perhaps label, split; it has file",
}


def test_mistakes(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "wrong.csv").write_text("file\na.png\n")
    lay_out(tmp_path, "notes.txt", *(f"imagenet/{split}/n01440764/1.JPEG" for split in ("train", "val")))
    for given, words in MISTAKES.items():
        path = str(tmp_path / given)
        refusal(partial(read_pictures, path, option="pictures"), start=f"pictures: {words.format(path)}")
    nothing: list[Any] = [[], np.zeros((0, 4, 4, 3), np.uint8)]
    for none in nothing:
        refusal(partial(read_pictures, none), start="photos: there are none in")


def test_sources_are_known_by_their_names() -> None:
    for photos in ("hf://owner/name", "hf://datasets/owner/name/data/*.parquet", "s3://bucket/*.tar"):
        assert isinstance(find_source(photos), HuggingFaceDataset)
    assert find_source("photos") is find_source(["a.tar", "b.png"]) is None
