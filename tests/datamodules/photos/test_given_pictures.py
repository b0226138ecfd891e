"""Pictures as commands are given them: every form lists the same bytes in the same order."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from headstart.datamodules import DrawnPets
from headstart.datamodules.photos.given_pictures import find_source, read_pictures
from headstart.datamodules.photos.photo_source import Photos
from headstart.output.errors import UserError
from headstart.tests.material.shards import png, write_shard

REDS = range(6)


def lay_out(root: Path) -> list[str]:
    """Write the pictures into a folder, in the order of their names."""
    root.mkdir()
    for red in REDS:
        (root / f"{red}.png").write_bytes(png(red))
    return [str(root / f"{red}.png") for red in REDS]


def in_folder(root: Path) -> str:
    lay_out(root / "pictures")
    return str(root / "pictures")


def by_pattern(root: Path) -> str:
    lay_out(root / "pictures")
    return str(root / "pictures" / "*.png")


def in_csv(root: Path, header: str = "path", rest: str = "") -> str:
    lay_out(root / "pictures")
    (root / "list.csv").write_text("\n".join([header, *(f"pictures/{red}.png{rest}" for red in REDS)]))
    return str(root / "list.csv")


def in_shards(root: Path) -> str:
    for shard in range(2):
        write_shard(root / f"{shard}.tar", REDS[3 * shard : 3 * shard + 3])
    return str(root / "{0..1}.tar")


def in_parquet(root: Path) -> str:
    parquet.write_table(pa.table({"picture": [png(red) for red in REDS]}), root / "a.parquet")
    return str(root / "a.parquet")


def on_disk(root: Path) -> str:
    features = datasets.Features({"image": datasets.Image()})
    splits = {
        split: datasets.Dataset.from_dict({"image": [{"bytes": png(red), "path": None} for red in reds]}, features)
        for split, reds in (("train", REDS[:4]), ("test", REDS[4:]))
    }
    datasets.DatasetDict(splits).save_to_disk(str(root / "saved"))
    return str(root / "saved")


FORMS: dict[str, Callable[[Path], object]] = {
    "a folder": in_folder,
    "a path": lambda root: Path(in_folder(root)),
    "a pattern": by_pattern,
    "a list": lambda root: lay_out(root / "pictures"),
    "a CSV file": in_csv,
    "a CSV file with labels": lambda root: in_csv(root, "path,label", ",cat"),
    "a CSV file with a hole": lambda root: in_csv(root, "path,label", ","),
    "shards": in_shards,
    "a list of shards": lambda root: [in_shards(root).replace("{0..1}", str(shard)) for shard in range(2)],
    "Parquet": in_parquet,
    "Parquet by its Path": lambda root: Path(in_parquet(root)),
    "shards by a pattern without their ending": lambda root: in_shards(root).replace("{0..1}.tar", "*"),
    "a data set on disk": on_disk,
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
    for wrong in (np.zeros((2, 4, 5), np.uint8), np.zeros((2, 4, 5, 3))):
        with pytest.raises(UserError, match=r"^photos: array 0 is .*; give uint8 \[height, width, 3\]"):
            read_pictures(wrong)  # type: ignore[arg-type]


COMPRESSED = (".tar.gz", ".tgz", ".tar.zst", ".TAR.XZ")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("nowhere", "photos: there is no folder .*nowhere; give one that holds pictures, or a list of files"),
        ("*.png", r"photos: .*\*\.png: no file matches it"),
        ("empty", "photos: there are none in .*empty"),
        ("shards", r"photos: there are none in '.*shards'; give '\*\.tar' in it"),
        (
            "imagenet",
            r"photos: there are none in '.*imagenet'; there are some one level deeper; give '.*imagenet/train' or "
            r"'.*imagenet/val'",
        ),
        ("nowhere.tar", r"photos: the file .*nowhere\.tar cannot be read"),
        ("notes.txt", r"photos: .*notes\.txt matches no picture; give a folder, or files that end in \.jpg, .* or"),
        ("*.txt", r"photos: .*\*\.txt matches no picture; give a folder, or files that end in"),
        *((f"a{end}", r"photos: .* matches no picture; unpack compressed shards to plain \.tar") for end in COMPRESSED),
        ("nowhere.csv", r"photos\.file: .*nowhere\.csv cannot be read"),
        ("wrong.csv", r"photos\.file: .* must have the columns path and perhaps label, split; it has file"),
    ],
)
def test_mistakes(tmp_path: Path, given: str, expected: str) -> None:
    (tmp_path / "empty").mkdir()
    write_shard(tmp_path / "shards" / "0.tar", REDS)
    (tmp_path / "wrong.csv").write_text("file\na.png\n")
    for split in ("train", "val"):
        (tmp_path / "imagenet" / split / "n01440764").mkdir(parents=True)
        (tmp_path / "imagenet" / split / "n01440764" / "1.JPEG").touch()
    for name in ("notes.txt", *(f"a{end}" for end in COMPRESSED)):
        (tmp_path / name).touch()
    with pytest.raises(UserError, match=f"^{expected}") as caught:
        read_pictures(str(tmp_path / given))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", COMPRESSED)
def test_a_compressed_shard_is_no_data_set(name: str, tmp_path: Path) -> None:
    file, folder = tmp_path / f"a{name}", tmp_path / f"b{name}"
    assert find_source(str(file)) is None
    file.touch()
    folder.mkdir()
    assert find_source(str(folder)) is None
    assert find_source(str(tmp_path / "photos.tar.unpacked")) is None
    for given in (str(file), str(tmp_path / f"*{name}"), f"s3://bucket/a{name}"):
        with pytest.raises(UserError, match=r"a.* matches no picture; unpack compressed shards to plain \.tar$"):
            find_source(given)


def test_a_compressed_shard_at_a_url() -> None:
    with pytest.raises(UserError, match=r"^photos: s3://bucket/a\.tar\.gz matches no picture; unpack compressed"):
        read_pictures("s3://bucket/a.tar.gz")


def test_the_option_is_named_and_paths_stay(tmp_path: Path) -> None:
    given = str(tmp_path / "photos" / "none")
    with pytest.raises(UserError, match=f"^pictures: there is no folder {given};"):
        read_pictures(given, option="pictures")


def test_patterns_stand_for_files(tmp_path: Path) -> None:
    lay_out(tmp_path / "pictures")
    lay_out(tmp_path / "pictures" / "more")
    assert len(read_pictures(str(tmp_path / "pictures" / "*"))) == len(REDS)
    assert len(read_pictures(str(tmp_path / "pictures" / "**"))) == 2 * len(REDS)


def test_lists_without_pictures() -> None:
    with pytest.raises(UserError, match=r"^photos: there are none in"):
        read_pictures([])
    with pytest.raises(UserError, match=r"^photos: there are none in"):
        read_pictures(np.zeros((0, 4, 4, 3), np.uint8))


@pytest.mark.parametrize(
    ("photos", "kind"),
    [
        ("hf://owner/name", "HuggingFaceDataset"),
        ("hf://datasets/owner/name/data/*.parquet", "ParquetPhotos"),
        ("s3://bucket/{000..099}.tar", "WebDatasetShards"),
        ("photos", "NoneType"),
        (["a.tar", "b.png"], "NoneType"),
    ],
)
def test_sources_are_known_by_their_names(photos: str | list[str], kind: str) -> None:
    assert type(find_source(photos)).__name__ == kind


def test_labels_stay_as_far_as_there_are_any(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png(1))
    (tmp_path / "b.png").write_bytes(png(2))
    (tmp_path / "list.csv").write_text("path,label\na.png,dog\nb.png,\n")
    pictures = read_pictures(str(tmp_path / "list.csv"))
    assert isinstance(pictures, Photos)
    assert (pictures.classes, pictures.labels.tolist()) == (("dog",), [0, -1])
    shards = read_pictures(in_shards(tmp_path))
    assert isinstance(shards, Photos)
    assert (shards.classes, shards.labels.tolist()) == (("even", "odd"), [0, 1, 0, 1, 0, 1])
