"""Rows of another network, layer, setting, preparation, decoder or version are not taken; names change nothing."""

from dataclasses import fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from headstart.datamodules import row_request
from headstart.datamodules.photos.photo_source import Photos
from headstart.datamodules.photos.stimuli import Stimuli
from headstart.datamodules.row_request import NetworkSettings, RowRequest
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import NetworkSpec
from headstart.modules.networks.taps import SOURCE_HEAD, Tap
from headstart.store.json_digest import digest_of
from headstart.tests.material.stored_rows import NETWORK, ON_CPU, SMALL, TAPS

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
        "loaded_sha256": "a digest",
    },
    Preprocessing: {
        "resize": 40,
        "crop": 24,
        "mean": (0.4, 0.456, 0.406),
        "std": (0.2, 0.224, 0.225),
        "interpolation": "bicubic",
    },
    Tap: {"layer": "features.2", "strategy": "pool", "width": 4, "of_classifier": True},
    NetworkSettings: {"precision": "bfloat16", "device": "cuda", "folded": True},
}
# Fields that do not: names, permissions and terms.
HARMLESS: dict[type, dict[str, Any]] = {
    NetworkSpec: {"name": "another", "allowed_modules": ["zoo"], "terms": None},
    Preprocessing: {},
    Tap: {},
    NetworkSettings: {},
}


def changed(request: RowRequest, kind: type, field: str, value: Any) -> str:
    """Return the name of the table after one field has changed."""
    parts: dict[type, tuple[str, Any]] = {
        NetworkSpec: ("network", NETWORK),
        Preprocessing: ("preprocessing", SMALL),
        Tap: ("taps", TAPS[1]),
        NetworkSettings: ("settings", ON_CPU),
    }
    name, part = parts[kind]
    part = replace(part, **{field: value})
    change: Any = {name: [TAPS[0], part] if kind is Tap else part}
    return digest_of(replace(request, **change).key)


def test_tables_are_named_by_all_that_rows_depend_on(photos: Photos, monkeypatch: pytest.MonkeyPatch) -> None:
    request = RowRequest(photos, SMALL, ON_CPU, NETWORK, TAPS)
    table, pixels = digest_of(request.key), digest_of(RowRequest(photos, SMALL).key)
    for kind, parts in SEPARATING.items():
        assert [field for field in parts if changed(request, kind, field, parts[field]) == table] == []
        same = HARMLESS[kind]
        assert [field for field in same if changed(request, kind, field, same[field]) != table] == []
        # The preparation of photos is a part with parts.
        known = {*parts, *same, *(["preprocessing"] if kind is NetworkSpec else [])}
        assert {field.name for field in fields(kind)} == known

    others = [replace(request, taps=taps) for taps in (TAPS[::-1], TAPS[:1], [*TAPS, SOURCE_HEAD], [])]
    others.append(replace(request, taps=[], boundary="features.14"))
    # What is refused of strangers' pictures could be there.
    paths = [Path(photos.root) / name for name in photos.names]  # type: ignore[attr-defined]
    others.append(replace(request, pictures=Stimuli(photos.names, paths)))
    assert len({table, *(digest_of(each.key) for each in others)}) == len(others) + 1

    # The normalisation is no part of prepared pictures.
    assert digest_of(RowRequest(photos, replace(SMALL, mean=(0.0, 0.0, 0.0))).key) == pixels
    for package in ("torch", "torchvision", "pillow"):
        monkeypatch.setattr(row_request, "version", lambda name, p=package: "another" if name == p else version(name))
        assert digest_of(replace(request).key) != table
        assert digest_of(RowRequest(photos, SMALL).key) != pixels
