"""Rows are computed once for every picture, network and policy, and never taken for those of another."""

import errno
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from headstart.datamodules import decoding, row_computation, rows
from headstart.datamodules.photos.class_folders import ClassFolders
from headstart.datamodules.photos.photo_source import Photos, Pictures
from headstart.datamodules.photos.stimuli import Stimuli
from headstart.datamodules.row_policy import Policy, Resources
from headstart.modules.networks.backbone import BackboneSpec
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import NetworkSpec
from headstart.modules.networks.taps import SOURCE_HEAD, Tap
from headstart.output.errors import UserError
from headstart.store.row_store import StoredRows

SMALL = Preprocessing(resize=32, crop=32)
NETWORK = BackboneSpec("mobilenet_v2", "random", {"width_mult": 0.25}, SMALL).network(0)
ON_CPU = Policy(device="cpu")
TAPS = [Tap("features.1", "pool", None), Tap("penultimate", "flatten", 1280)]


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Collect how many rows each computation gives."""
    counts: list[int] = []
    compute = row_computation.ComputedRows.__iter__

    def count(self: row_computation.ComputedRows) -> Iterator[Any]:
        counts.append(len(self))
        return compute(self)

    monkeypatch.setattr(row_computation.ComputedRows, "__iter__", count)
    return counts


@pytest.fixture
def photos(photo_folder: Path) -> Photos:
    return ClassFolders(str(photo_folder)).train()


Find = Callable[..., StoredRows]


@pytest.fixture
def find(tmp_path: Path) -> Find:
    """Ask for rows, by default of the network at its taps."""

    def ask(
        pictures: Pictures,
        network: NetworkSpec = NETWORK,
        taps: Sequence[Tap] = TAPS,
        policy: Policy = ON_CPU,
        cache: str = "cache",
    ) -> StoredRows:
        return rows.rows(network, taps, pictures, policy, Resources(tmp_path / cache, "rows", 0))

    return ask


def find_features(photos: Pictures, folder: Path, seed: int = 0) -> StoredRows:
    spec = BackboneSpec("mobilenet_v2", "random", {"width_mult": 0.25}, SMALL).network(seed)
    policy = Policy(folded=True, unreadable="remark", device="cpu")
    return rows.rows(spec, [], photos, policy, Resources(folder, "features", 0))


def find_pixels(photos: Pictures, folder: Path, preprocessing: Preprocessing = SMALL) -> StoredRows:
    return rows.pixels(preprocessing, photos, Resources(folder, "pixels", 0))


WAYS: dict[str, Callable[[Pictures, Path], StoredRows]] = {
    "embeddings": lambda photos, folder: rows.rows(NETWORK, TAPS, photos, ON_CPU, Resources(folder, "", 0)),
    "features": find_features,
    "pixels": find_pixels,
}


@pytest.mark.parametrize("way", WAYS)
def test_subsets_and_orders_share_the_rows_of_the_whole(
    photos: Photos, tmp_path: Path, computed: list[int], way: str
) -> None:
    find = WAYS[way]
    whole = find(photos, tmp_path / "whole")
    assert computed == [24]
    for indices in ([3, 4, 5], [7, 0, 23], list(range(23, -1, -1))):
        part = find(photos.subset(np.array(indices)), tmp_path / "whole")
        assert np.array_equal(part.rows, whole.rows[indices])
        assert part.notes == whole.notes
    assert computed == [24]
    # Bit for bit the same, whichever rows were computed together.
    for indices in ([5], [2, 9, 5, 11], list(range(24))):
        part = find(photos.subset(np.array(indices)), tmp_path / "parts")
        assert np.array_equal(part.rows, whole.rows[indices])
    assert computed == [24, 1, 3, 20]


@pytest.mark.parametrize("way", WAYS)
def test_rows_in_order_are_memory_mapped(photos: Photos, tmp_path: Path, way: str) -> None:
    for _ in range(2):
        assert isinstance(WAYS[way](photos, tmp_path).rows, np.memmap)


def test_a_photo_is_found_under_any_name(photo_folder: Path, find: Find, computed: list[int]) -> None:
    first = find(ClassFolders(str(photo_folder)).train())
    (photo_folder / "train").rename(photo_folder / "learn")
    (photo_folder / "learn" / "dark").rename(photo_folder / "learn" / "abyss")
    for path in list((photo_folder / "learn" / "light").iterdir()):
        path.rename(path.with_name(f"a{path.name}"))
    (photo_folder / "validation" / "dark").rename(photo_folder / "validation" / "abyss")
    (photo_folder / "learn").rename(photo_folder / "train")
    moved = photo_folder.rename(photo_folder.with_name("moved"))
    again = find(ClassFolders(str(moved)).train())
    assert computed == [24]
    assert sorted(map(bytes, first.rows)) == sorted(map(bytes, again.rows))


def test_equal_photos_are_computed_once(photo_folder: Path, find: Find, computed: list[int]) -> None:
    files = sorted((photo_folder / "train" / "dark").iterdir())
    for path in files[1:]:
        path.write_bytes(files[0].read_bytes())
    result = find(ClassFolders(str(photo_folder)).train())
    assert computed == [13]
    assert (result.rows[:12] == result.rows[0]).all()


# Fields that identify a table of rows, by their class: another value results in another table.
SEPARATING: dict[type, dict[str, Any]] = {
    NetworkSpec: {
        "library": "timm",
        "model": "mobilenet_v3_small",
        "weights": "DEFAULT",
        "arguments": {"width_mult": 0.35},
        "seed": 1,
        "forward_args": {"scale": 2},
        "pixels": True,
        "loaded": "a digest",
    },
    Preprocessing: {
        "resize": 40,
        "crop": 24,
        "mean": (0.4, 0.456, 0.406),
        "std": (0.2, 0.224, 0.225),
        "interpolation": "bicubic",
    },
    Tap: {"layer": "features.2", "strategy": "pool", "width": 4, "of_classifier": True},
    Policy: {"precision": "bfloat16", "unreadable": "remark", "device": "cuda", "thumbnails": True},
}
# Fields that do not: names, permissions and terms.
HARMLESS: dict[type, dict[str, Any]] = {
    NetworkSpec: {"name": "another", "allowed_modules": ["zoo"], "terms": None},
    Preprocessing: {},
    Tap: {},
    Policy: {},
}


def change(kind: type, field: str, value: Any) -> dict[str, Any]:
    changed = {field: value}
    if kind is NetworkSpec:
        return {"network": replace(NETWORK, **changed)}
    if kind is Preprocessing:
        return {"network": replace(NETWORK, preprocessing=replace(SMALL, **changed))}
    if kind is Tap:
        return {"taps": [TAPS[0], replace(TAPS[1], **changed)]}
    return {"policy": replace(ON_CPU, **changed)}


class FetchAttempted(Exception):  # noqa: N818 - no error
    """Rows are asked for that are not there."""


@pytest.fixture
def there(photos: Photos, find: Find, monkeypatch: pytest.MonkeyPatch) -> Photos:
    """Photos whose rows are there; those that are not may not be computed any more."""
    find(photos)

    def refuse(*args: Any) -> None:
        raise FetchAttempted

    monkeypatch.setattr(row_computation, "load", refuse)
    find(photos)
    return photos


@pytest.mark.parametrize(("kind", "field"), [(kind, field) for kind, parts in SEPARATING.items() for field in parts])
def test_rows_of_another_kind_are_not_taken(there: Photos, find: Find, kind: type, field: str) -> None:
    with pytest.raises(FetchAttempted):
        find(there, **change(kind, field, SEPARATING[kind][field]))


@pytest.mark.parametrize(("kind", "field"), [(kind, field) for kind, parts in HARMLESS.items() for field in parts])
def test_rows_of_the_same_kind_are_taken(there: Photos, find: Find, kind: type, field: str) -> None:
    find(there, **change(kind, field, HARMLESS[kind][field]))


@pytest.mark.parametrize("kind", SEPARATING)
def test_every_part_is_known_to_separate_or_not(kind: type) -> None:
    # How photos are prepared is a part with parts; folded networks have no taps.
    known = {*SEPARATING[kind], *HARMLESS[kind], *{NetworkSpec: ["preprocessing"], Policy: ["folded"]}.get(kind, [])}
    assert {field.name for field in fields(kind)} == known


@pytest.mark.parametrize("taps", [TAPS[::-1], TAPS[:1], [*TAPS, SOURCE_HEAD], []])
def test_other_taps_are_other_rows(there: Photos, find: Find, taps: list[Tap]) -> None:
    with pytest.raises(FetchAttempted):
        find(there, taps=taps)


def test_other_decoders_are_other_rows(there: Photos, find: Find, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(there.root)  # type: ignore[attr-defined]
    with pytest.raises(FetchAttempted):  # what is refused of strangers' pictures could be there
        find(Stimuli(there.names, [folder / name for name in there.names]))


@pytest.mark.parametrize("package", ["torch", "torchvision", "pillow"])
def test_other_versions_are_other_rows(
    there: Photos, find: Find, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "version", lambda name: "another" if name == package else version(name))
    with pytest.raises(FetchAttempted):
        find(there)


@pytest.mark.parametrize("package", ["torch", "torchvision", "pillow"])
def test_other_versions_are_other_pixels(
    photos: Photos, tmp_path: Path, computed: list[int], package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_pixels(photos, tmp_path)
    monkeypatch.setattr(rows, "version", lambda name: "another" if name == package else version(name))
    for _ in range(2):
        find_pixels(photos, tmp_path)
    assert computed == [24, 24]


def test_rows_of_two_devices_lie_side_by_side(
    photos: Photos, find: Find, computed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_cpu = find(photos)
    # The processor stands in for a GPU.
    loading = row_computation.load
    monkeypatch.setattr(row_computation, "load", lambda network, taps, *_: loading(network, taps, ON_CPU))
    for _ in range(2):
        find(photos, policy=Policy(device="cuda:1"))
        assert np.array_equal(find(photos).rows, on_cpu.rows)
    find(photos.subset(np.arange(3)), policy=Policy(device="cuda"))
    assert computed == [24, 24]


def test_folded_and_not_are_other_features(photos: Photos, tmp_path: Path, computed: list[int]) -> None:
    folded = find_features(photos, tmp_path)
    plain = rows.rows(NETWORK, [], photos, ON_CPU, Resources(tmp_path, "features", 0))
    assert computed == [24, 24]
    assert not np.array_equal(plain.rows, folded.rows)
    np.testing.assert_allclose(plain.rows, folded.rows, rtol=1e-3, atol=1e-5)
    tapped = rows.rows(NETWORK, TAPS[1:], photos, ON_CPU, Resources(tmp_path, "embeddings", 0))
    np.testing.assert_allclose(plain.rows, tapped.rows, rtol=1e-3, atol=1e-5)
    assert folded.notes["widths"] == plain.notes["widths"] == tapped.notes["widths"] == [1280]


def test_folded_networks_have_no_layers(photos: Photos, find: Find) -> None:
    with pytest.raises(ValueError, match="no layers to take embeddings at"):
        find(photos, policy=Policy(folded=True))


@pytest.mark.parametrize("way", ["features", "pixels"])
def test_photo_that_cannot_be_read_at_the_moment_is_computed_next_time(
    photos: Photos, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Photos, index: int) -> Image.Image:
        raise OSError(errno.EIO, "Input/output error")

    fail.__module__, fail.__qualname__ = type(photos).read.__module__, type(photos).read.__qualname__
    with monkeypatch.context() as patched:
        patched.setattr(type(photos), "read", fail)
        with pytest.raises(UserError, match="cannot be read at the moment"):
            WAYS[way](photos, tmp_path)
    assert not WAYS[way](photos, tmp_path).remarks


def test_a_changed_photo_is_computed_anew(photos: Photos, photo_folder: Path, find: Find, computed: list[int]) -> None:
    before = find(photos)
    path = photo_folder / photos.names[5]
    path.write_bytes(path.read_bytes() + b"\0")  # still the same pixels
    after = find(ClassFolders(str(photo_folder)).train())
    assert computed == [24, 1]
    assert np.array_equal(before.rows, after.rows)


def test_pixels_do_not_depend_on_the_normalisation(photos: Photos, tmp_path: Path, computed: list[int]) -> None:
    first = find_pixels(photos, tmp_path)
    other = replace(SMALL, mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
    assert np.array_equal(find_pixels(photos, tmp_path, other).rows, first.rows)
    assert computed == [24]
    for changed in ({"resize": 40}, {"crop": 24}, {"interpolation": "bicubic"}):
        assert not np.array_equal(find_pixels(photos, tmp_path, replace(SMALL, **changed)).rows, first.rows)
    assert computed == [24] * 4


@pytest.mark.parametrize("way", ["features", "pixels"])
def test_unreadable_photo_until_it_is_mended(photo_folder: Path, tmp_path: Path, computed: list[int], way: str) -> None:
    source, find = ClassFolders(str(photo_folder)), WAYS[way]
    name = "train/dark/3.jpg"
    intact = (photo_folder / name).read_bytes()
    (photo_folder / name).write_bytes(intact[:100])
    index = source.train().names.index(name)
    for indices in (range(24), range(23, -1, -1), [index], range(24)):
        result = find(source.train().subset(np.array(indices)), tmp_path)
        assert list(result.remarks) == [list(indices).index(index)]
    assert computed == [24]
    assert not find(source.train().subset(np.array([index + 1])), tmp_path).remarks
    (photo_folder / name).write_bytes(intact)
    mended = find(source.train(), tmp_path)
    assert not mended.remarks
    assert computed == [24, 1]
    assert np.array_equal(mended.rows, find(source.train(), tmp_path / "fresh").rows)


def test_unreadable_photo_is_refused_and_nothing_is_kept(photo_folder: Path, find: Find, computed: list[int]) -> None:
    source = ClassFolders(str(photo_folder))
    path = photo_folder / "train" / "dark" / "3.jpg"
    intact = path.read_bytes()
    path.write_bytes(b"damaged")
    for _ in range(2):
        with pytest.raises(UserError, match=r"'train/dark/3\.jpg' cannot be decoded"):
            find(source.train())
    path.write_bytes(intact)
    find(source.train())
    assert computed == [24, 24, 24]


def test_interrupted_computation_leaves_nothing(
    photos: Photos, find: Find, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = photos.subset(np.arange(4))
    find(first)
    before = sorted((tmp_path / "cache").glob("*/*/*"))
    read = type(photos).read

    def interrupted(self: Photos, index: int) -> Image.Image:
        if index == 20:
            raise KeyboardInterrupt
        return read(self, index)

    interrupted.__module__, interrupted.__qualname__ = read.__module__, read.__qualname__
    monkeypatch.setattr(type(photos), "read", interrupted)
    with pytest.raises(KeyboardInterrupt):
        find(photos)
    assert sorted((tmp_path / "cache").glob("*/*/*")) == before
    monkeypatch.undo()
    assert find(photos).computed == 20


def test_only_the_asked_for_photos_are_read(photo_folder: Path, find: Find, monkeypatch: pytest.MonkeyPatch) -> None:
    photos = ClassFolders(str(photo_folder)).train()
    for name in photos.names[6:]:
        (photo_folder / name).unlink()
    assert len(find(photos.subset(np.arange(6))).rows) == 6


def die(self: Photos, index: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def find_no_room(self: torch.Tensor) -> None:
    raise RuntimeError("unable to allocate shared memory(shm) for file </torch_1>: No space left on device (28)")


@pytest.mark.parametrize(
    ("target", "failure", "reason"),
    [
        (
            "headstart.datamodules.photos.photo_source.PhotoFiles.read",
            die,
            "killed by signal: Killed|exited unexpectedly",
        ),
        ("torch.Tensor.share_memory_", find_no_room, "No space left on device"),
    ],
)
def test_end_of_a_decoding_process_is_reported_in_one_line(
    photos: Photos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, failure: Any, reason: str
) -> None:
    monkeypatch.setattr(target, failure)
    message = rf"^num_workers: a process that decodes pictures came to an end \(.*({reason}).*\); what is computed is"
    with pytest.raises(UserError, match=message) as caught:
        rows.pixels(SMALL, photos, Resources(tmp_path, "pixels", 1))
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_one_process_decodes_where_shared_memory_is_short(
    photos: Photos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoding, "share_memory", lambda workers, batch, held: (0, 4))
    monkeypatch.setattr("headstart.datamodules.photos.photo_source.PhotoFiles.read", in_process(os.getpid()))
    assert len(rows.pixels(SMALL, photos, Resources(tmp_path, "pixels", 8)).rows) == len(photos)


def in_process(expected: int) -> Callable[..., Image.Image]:
    def read(self: Photos, index: int) -> Image.Image:
        assert os.getpid() == expected
        return Image.new("RGB", (32, 32))

    return read
