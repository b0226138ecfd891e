"""A photo that changes for a moment leaves no row, remark or digest behind that the intact photos would not give."""

import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from headstart.datamodules import ClassFolders, FeatureStream, PhotoStream
from headstart.datamodules.photo_batches import PhotoBatches
from headstart.tests.material.changing_photos import FAULTS, VICTIM, Moments, cut, replace, swap, watched
from headstart.tests.material.stored_rows import rows_in

TRIALS = 30
SetUp = Callable[..., Any]


@pytest.fixture
def moments(photo_folder: Path) -> Iterator[Moments]:
    with watched(photo_folder) as moments:
        yield moments


WAYS: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "features": (FeatureStream, {}),
    "photos": (PhotoStream, {"views": 2}),
    "activations": (PhotoStream, {"trainable_from": "features.14"}),
    "batches": (PhotoBatches, {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_a_photo_that_changes_for_a_moment(
    way: str, skip: bool, moments: Moments, tiny: Any, set_up: SetUp, tmp_path: Path
) -> None:
    kind, options = WAYS[way]

    def feed(cache: str) -> dict[str, Any]:
        chosen = {"on_bad_image": "skip" if skip else "stop", "cache_dir": str(tmp_path / cache), **options}
        if kind is PhotoBatches:
            source = ClassFolders(str(moments.folder))
            fed = PhotoBatches(photos=source, backbone=tiny, num_workers=0, **chosen)
            fed.setup("fit")
            fed.load_photos(tiny.preprocessing, torch.device("cpu"))
            prints = fed.fingerprints()
        else:
            fed = set_up(kind, max_samples=4, **chosen)
            prints = fed.fingerprints
        inputs = [bytes(part.contiguous().numpy()) for part in (fed.train_inputs, fed.validation_inputs)]
        return {**prints, "inputs": inputs, "unreadable": fed.unreadable}

    clean = moments.run(lambda: feed("clean"))
    count, rows = moments.passed, rows_in(tmp_path / "clean")
    assert count > 4
    random, changed = np.random.default_rng(0), 0
    for trial in range(TRIALS):
        name = list(FAULTS)[trial % len(FAULTS)]
        first = int(random.integers(count))
        last, cache = first + int(random.integers(1, 3)), str(trial)
        during = moments.run(lambda: feed(cache), FAULTS[name], first, last)  # noqa: B023
        kept = rows_in(tmp_path / cache)
        assert {key: kept[key] for key in rows.keys() & kept.keys()} == {
            key: rows[key] for key in rows.keys() & kept.keys()
        }
        if during is not None and during["train_photos_sha256"] == clean["train_photos_sha256"]:
            assert during == clean, (name, first, last)
        changed += during != clean
        assert moments.run(lambda: feed(cache)) == clean, (name, first, last)  # noqa: B023
    assert changed
    assert not any("\n" in message for message in moments.messages)


@pytest.mark.parametrize("fault", [swap, replace, cut])
def test_photos_are_decoded_from_the_bytes_that_were_digested(
    fault: Callable[[Path], None], photo_folder: Path
) -> None:
    Image.effect_noise((40, 40), 90).convert("RGB").save(photo_folder / "another.jpg")
    photos = ClassFolders(str(photo_folder)).train()
    index = list(photos.names).index(VICTIM)
    subset = photos.subset(np.array([index]))
    for some in (subset, photos):
        intact = (photo_folder / VICTIM).read_bytes()
        some.digests()
        fault(photo_folder / VICTIM)
        with pytest.raises(OSError, match="its bytes have changed since they were digested") as raised:
            subset.read(0)
        assert raised.value.errno == errno.ESTALE  # which is never stored as a remark
        (photo_folder / VICTIM).write_bytes(intact)
        subset.read(0)
