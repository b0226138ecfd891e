"""Photos in Parquet files, and data sets of Hugging Face's library read from theirs without fetching them."""

import hashlib
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from headstart.datamodules import HuggingFaceDataset, ParquetPhotos
from headstart.output.errors import UserError
from headstart.store import file_digests
from headstart.tests.material.shards import png

Columns = dict[str, list[Any]]


def write(path: Path, columns: Columns, group: int = 4) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table(columns), path, row_group_size=group)
    return path


def write_photos(path: Path, reds: range, **others: list[Any]) -> Path:
    """Write photos of classes 9 and 10, as a library other than Hugging Face's would."""
    columns: Columns = {"photo": [png(red) for red in reds], "label": [9 + red % 2 for red in reds]}
    return write(path, {**columns, **others})


def write_hub(folder: Path, **sizes: int) -> Path:
    """Write splits as Hugging Face's library writes them, of two files each."""
    features = datasets.Features({"image": datasets.Image(), "kind": datasets.ClassLabel(names=["dog", "cat"])})
    folder.mkdir(parents=True)
    for split, size in sizes.items():
        cells = [{"bytes": png(red), "path": f"{red}.png"} for red in range(size)]
        made = datasets.Dataset.from_dict({"image": cells, "kind": [red % 2 for red in range(size)]}, features)
        for number in range(2):
            made.shard(2, number, contiguous=True).to_parquet(str(folder / f"{split}-0000{number}-of-00002.parquet"))
    return folder


def reds(photos: Any) -> list[int]:
    return [photos.read(index).getpixel((0, 0))[0] for index in range(len(photos))]


@pytest.fixture(autouse=True)
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "fetched")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)


def test_photos_labels_and_order(tmp_path: Path) -> None:
    for number in range(2):
        write_photos(tmp_path / "pets" / f"{number}.parquet", range(10 * number, 10 * number + 10))
    source = ParquetPhotos(str(tmp_path / "pets" / "*.parquet"), validation_fraction=0.2)
    train, validation = source.train(), source.validation()
    assert source.name == "pets"
    assert train.classes == ("9", "10")
    assert sorted(reds(train) + reds(validation)) == list(range(20))
    assert (np.bincount(train.labels).tolist(), np.bincount(validation.labels).tolist()) == ([8, 8], [2, 2])
    for photos in (train, validation):
        assert photos.labels.tolist() == [red % 2 for red in reds(photos)]
    every = source.pictures()
    assert every.names[13] == "1.parquet/3"
    assert [*every.digests()] == [hashlib.sha256(png(red)).hexdigest() for red in range(20)]
    assert (reds(every.part(np.array([17, 2]))), reds(pickle.loads(pickle.dumps(every.part(np.array([17, 2])))))) == (
        [17, 2],
        [17, 2],
    )


@pytest.mark.parametrize(
    "kind", [pa.binary(), pa.large_binary(), pa.struct({"bytes": pa.binary(), "path": pa.string()})]
)
def test_types_of_columns(tmp_path: Path, kind: Any) -> None:
    cells = [png(red) for red in range(3)]
    packed = [{"bytes": cell, "path": None} for cell in cells] if pa.types.is_struct(kind) else cells
    labels = pa.array(["b", "a", None]).dictionary_encode()
    path = write(tmp_path / "a.parquet", {"x": pa.array([*packed, None], kind), "y": pa.array(["b", "a", None, ""])})
    photos = ParquetPhotos(str(path), label="y").pictures()
    assert reds(photos.part(np.arange(3))) == [0, 1, 2]
    assert photos.classes == ("a", "b")
    assert photos.labels.tolist() == [1, 0, -1, -1]
    with pytest.raises(OSError, match="it has no bytes") as caught:
        photos.read(3)
    assert caught.value.errno is None
    write(path, {"x": pa.array(packed, kind), "y": labels})
    assert ParquetPhotos(str(path), label="y").pictures().labels.tolist() == [1, 0, -1]


@pytest.mark.parametrize(
    ("columns", "options", "expected"),
    [
        ({"text": ["a"]}, {}, r"image: .* has no columns of bytes; its columns are text \(string\)"),
        ({"a": [b""], "b": [b""]}, {}, r"image: .* has 2 columns of bytes; its columns are a \(binary\), b \(binary\)"),
        (
            {"a": [b""], "n": [1]},
            {"image": "n"},
            r"image: .* has no column 'n' of bytes; its columns are a \(binary\), n",
        ),
        ({"a": [b""]}, {"label": "y"}, r"label: .* has no column 'y'; its columns are a \(binary\)"),
        ({"a": [b""], "label": [0.5]}, {}, r"label: column 'label' .* holds float; name one of texts or whole numbers"),
        ({"a": [b""]}, {}, r"train: 1 of 1 photos have no label, first 'a\.parquet/0' .*name the column"),
        ({"a": [b"", b""], "label": ["x", None]}, {}, r"train: 1 of 2 photos have no label, first 'a\.parquet/1'"),
        ({"a": pa.array([], pa.binary())}, {}, r"train: the Parquet file .* holds no row; leave it out"),
    ],
)
def test_columns_that_do_not_fit(tmp_path: Path, columns: Columns, options: dict[str, Any], expected: str) -> None:
    path = write(tmp_path / "a.parquet", columns)
    with pytest.raises(UserError, match=f"^{expected}") as caught:
        ParquetPhotos(str(path), **options).train()
    assert "\n" not in str(caught.value)


def test_files_named_in_place_of_bytes(tmp_path: Path) -> None:
    kind = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    path = write(tmp_path / "a.parquet", {"a": pa.array([{"bytes": None, "path": "x.png"}], kind)})
    with pytest.raises(UserError, match=r"^train: the Parquet file .* names files such as 'x\.png' in place of"):
        ParquetPhotos(str(path)).train()


def test_features_of_lists_are_no_photos(tmp_path: Path) -> None:
    table = pa.table({"image": [png(1)], "caps": [["a", "b"]], "kind": [1]})
    features = {
        "image": {"_type": "Image"},
        "caps": [{"dtype": "string", "_type": "Value"}],
        "kind": {"names": ["dog", "cat"], "_type": "ClassLabel"},
    }
    noted = json.dumps({"info": {"features": features}})
    parquet.write_table(table.replace_schema_metadata({"huggingface": noted}), tmp_path / "a.parquet")
    photos = ParquetPhotos(str(tmp_path / "a.parquet")).pictures()
    assert (reds(photos), photos.classes, photos.labels.tolist()) == ([1], ("dog", "cat"), [1])


def tear_end(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-30])


def tear_middle(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4:40] = b"\xff" * 36
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (tear_end, "is damaged or no Parquet file"),
        (tear_middle, "is damaged or no Parquet file"),
        (lambda path: path.write_bytes(b""), "is damaged or no Parquet file"),
        (lambda path: path.unlink(), "cannot be read"),
    ],
)
def test_damaged_files(tmp_path: Path, change: Callable[[Path], None], expected: str) -> None:
    path = write_photos(tmp_path / "a.parquet", range(9))
    change(path)
    with pytest.raises(UserError, match=f"^train: the .*a\\.parquet {expected}") as caught:
        ParquetPhotos(str(path)).train()
    assert "\n" not in str(caught.value)


def test_a_file_that_is_listed_twice(tmp_path: Path) -> None:
    path = str(write_photos(tmp_path / "a.parquet", range(3)))
    with pytest.raises(UserError, match=r"^train: the Parquet file .*a\.parquet is listed twice"):
        ParquetPhotos([path, path]).train()


@pytest.mark.parametrize("change", [tear_end, tear_middle, lambda path: write_photos(path, range(9, 18)), Path.unlink])
def test_bytes_that_change_afterwards_are_never_decoded(tmp_path: Path, change: Callable[[Path], None]) -> None:
    path = write_photos(tmp_path / "a.parquet", range(9))
    photos = ParquetPhotos(str(path)).pictures()
    change(path)
    with pytest.raises(OSError, match=r"have changed|is damaged|No such file") as caught:
        photos.read(1)
    assert caught.value.errno is not None


def test_digests_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_photos(tmp_path / "a.parquet", range(9))
    monkeypatch.setattr(file_digests, "SETTLED_NANOSECONDS", -(10**12))

    def read() -> list[str]:
        source = ParquetPhotos(str(path))
        source.prepare(tmp_path / "cache")
        return [*source.pictures().digests()]

    first = read()
    monkeypatch.setattr("headstart.datamodules.photos.parquet_index.read_group", None)
    assert read() == first


def test_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_photos(tmp_path / "a.parquet", range(3))
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with pytest.raises(UserError, match=r"Parquet files need a package .*pip install 'headstart\[datasets\]'"):
        ParquetPhotos(str(path)).train()


@pytest.mark.parametrize("sizes", [{"train": 20}, {"train": 20, "test": 6}])
def test_streamed_photos_are_those_that_are_fetched(tmp_path: Path, sizes: dict[str, int]) -> None:
    folder = str(write_hub(tmp_path / "pets", **sizes))
    fetched, streamed = HuggingFaceDataset(folder), HuggingFaceDataset(folder, streaming=True)
    streamed.prepare(tmp_path / "cache")
    assert not [*(tmp_path / "fetched").rglob("*.arrow")]
    pairs = [
        (fetched.train(), streamed.train()),
        (fetched.validation(), streamed.validation()),
        (fetched.pictures(), streamed.pictures()),
    ]
    for one, other in pairs:
        assert [*one.names] == [*other.names]
        assert reds(one) == reds(other)
    for one, other in pairs[:2]:
        assert one.classes == other.classes == ("dog", "cat")
        assert one.fingerprint() == other.fingerprint()


def test_streaming_reads_files_where_they_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec = pytest.importorskip("fsspec")
    files = fsspec.filesystem("memory")
    folder = write_hub(tmp_path / "pets", train=20)
    for path in folder.iterdir():
        files.pipe(f"/pets/{path.name}", path.read_bytes())
    locations = {"train": [f"memory://pets/{path.name}" for path in sorted(folder.iterdir())]}
    builder = type("Builder", (), {"config": type("Config", (), {"data_files": locations})})
    monkeypatch.setattr(datasets, "load_dataset_builder", lambda *_, **__: builder)
    streamed = HuggingFaceDataset("owner/pets", streaming=True)
    assert streamed.train().fingerprint() == HuggingFaceDataset(str(folder)).train().fingerprint()
    assert sorted(reds(streamed.train()) + reds(streamed.validation())) == list(range(20))
    assert reds(ParquetPhotos("memory://pets/train-*.parquet").pictures()) == list(range(20))
    files.rm("/pets", recursive=True)


def test_streaming_of_other_files(tmp_path: Path) -> None:
    for kind in ("cat", "dog"):
        (tmp_path / "pets" / "train" / kind).mkdir(parents=True)
        (tmp_path / "pets" / "train" / kind / "a.png").write_bytes(png(1))
    with pytest.raises(UserError, match=r"^streaming: .*pets is not made of Parquet files; leave streaming out"):
        HuggingFaceDataset(str(tmp_path / "pets"), streaming=True).prepare()
    write_photos(tmp_path / "plain" / "train.parquet", range(4))
    with pytest.raises(UserError, match=r"^label: .*plain notes no column of type ClassLabel; leave streaming out"):
        HuggingFaceDataset(str(tmp_path / "plain"), streaming=True).train()
