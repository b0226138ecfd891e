"""Ants and bees in the public archive's layout."""

import zipfile
from pathlib import Path

import numpy as np
import pytest

from headstart.datamodules.photos.ants_and_bees import AntsAndBees
from headstart.tests.material.file_servers import serve_files
from headstart.tests.material.root import shared_data

TRAIN = ["train/ants/0.jpg", "train/bees/1.jpg", "train/bees/2.jpg"]
VALIDATION = ["val/ants/3.jpg", "val/bees/4.jpg"]


def test_archive_is_fetched_into_the_cache_and_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with zipfile.ZipFile(tmp_path / "public.zip", "w") as file:
        for name in (*TRAIN, *VALIDATION, "train/ants/imageNotFound.svg"):
            file.writestr(f"hymenoptera_data/{name}", "")
    with serve_files() as server:
        server.files["/public.zip"] = (tmp_path / "public.zip").read_bytes()
        source = AntsAndBees(download=True, url=f"{server.url}/public.zip")
        source.prepare()
    train, validation = source.train(), source.validation()
    assert (source.name, train.classes) == ("ants_and_bees", ("ants", "bees"))
    assert (train.names, train.labels.tolist()) == (TRAIN, [0, 1, 1])
    assert (validation.names, validation.labels.tolist()) == (VALIDATION, [0, 1])
    assert set(train.left_out.values()) == {".svg"}
    source.prepare()


def test_public_photos() -> None:
    source = AntsAndBees(str(shared_data("ants_and_bees")))
    train, validation = source.train(), source.validation()
    assert (len(train), len(validation)) == (245, 153)
    assert np.bincount(validation.labels).min() > 60
    assert train.read(0).mode == "RGB"
