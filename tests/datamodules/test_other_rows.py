"""Rows of another network, layer, policy, preparation, decoder or version are not taken; names alone change nothing."""

from dataclasses import fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headstart.datamodules import row_computation, row_request, row_tasks
from headstart.datamodules.photos.photo_source import Photos
from headstart.datamodules.photos.stimuli import Stimuli
from headstart.datamodules.row_request import Policy, RowRequest
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import NetworkSpec
from headstart.modules.networks.taps import SOURCE_HEAD, Tap
from headstart.tests.material.stored_rows import NETWORK, ON_CPU, SMALL, TAPS, Find, features_of, find_in

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
    Policy: {"precision": "bfloat16", "device": "cuda"},
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

    monkeypatch.setattr(row_tasks, "load", refuse)
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
    # The preparation of photos is a part with parts; folded networks have no taps.
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
    monkeypatch.setattr(row_request, "version", lambda name: "another" if name == package else version(name))
    with pytest.raises(FetchAttempted):
        find(there)


@pytest.mark.parametrize("package", ["torch", "torchvision", "pillow"])
def test_other_versions_are_other_pixels(
    photos: Photos, tmp_path: Path, computed: list[int], package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_in(tmp_path, RowRequest(photos, SMALL))
    monkeypatch.setattr(row_request, "version", lambda name: "another" if name == package else version(name))
    for _ in range(2):
        find_in(tmp_path, RowRequest(photos, SMALL))
    assert computed == [24, 24]


def test_rows_of_two_devices_lie_side_by_side(
    photos: Photos, find: Find, computed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_cpu = find(photos)
    # The processor stands in for a GPU.
    loading = row_computation.load
    monkeypatch.setattr(row_tasks, "load", lambda network, taps, *_: loading(network, taps, ON_CPU))
    for _ in range(2):
        find(photos, policy=Policy(device="cuda:1"))
        assert np.array_equal(find(photos).rows, on_cpu.rows)
    find(photos.subset(np.arange(3)), policy=Policy(device="cuda"))
    assert computed == [24, 24]


def test_folded_and_not_are_other_features(photos: Photos, tmp_path: Path, computed: list[int]) -> None:
    folded = find_in(tmp_path, features_of(photos))
    plain = find_in(tmp_path, RowRequest(photos, SMALL, ON_CPU, NETWORK))
    assert computed == [24, 24]
    assert not np.array_equal(plain.rows, folded.rows)
    np.testing.assert_allclose(plain.rows, folded.rows, rtol=1e-3, atol=1e-5)
    tapped = find_in(tmp_path, RowRequest(photos, SMALL, ON_CPU, NETWORK, TAPS[1:]))
    np.testing.assert_allclose(plain.rows, tapped.rows, rtol=1e-3, atol=1e-5)
    assert folded.notes["widths"] == plain.notes["widths"] == tapped.notes["widths"] == [1280]


def test_pixels_do_not_depend_on_the_normalisation(photos: Photos, tmp_path: Path, computed: list[int]) -> None:
    first = find_in(tmp_path, RowRequest(photos, SMALL))
    other = replace(SMALL, mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
    assert np.array_equal(find_in(tmp_path, RowRequest(photos, other)).rows, first.rows)
    assert computed == [24]
    for changed in ({"resize": 40}, {"crop": 24}, {"interpolation": "bicubic"}):
        assert not np.array_equal(find_in(tmp_path, RowRequest(photos, replace(SMALL, **changed))).rows, first.rows)
    assert computed == [24] * 4
