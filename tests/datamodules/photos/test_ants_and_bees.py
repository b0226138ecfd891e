"""Ants and bees in the public archive's layout."""

import os
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from headstart.datamodules.photos.ants_and_bees import AntsAndBees

ROOT = Path(__file__).resolve().parents[3]
SHARED = Path(os.environ.get("HEADSTART_SHARED") or ROOT.parent / "shared") / "data" / "ants_and_bees"
TRAIN = ["train/ants/0.jpg", "train/bees/1.jpg", "train/bees/2.jpg"]
VALIDATION = ["val/ants/3.jpg", "val/bees/4.jpg"]


def test_archive_is_fetched_and_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with zipfile.ZipFile(tmp_path / "public.zip", "w") as file:
        for name in (*TRAIN, *VALIDATION, "train/ants/imageNotFound.svg"):
            file.writestr(f"hymenoptera_data/{name}", "")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        source = AntsAndBees(download=True, url=f"http://127.0.0.1:{server.server_port}/public.zip")
        source.prepare()
        server.shutdown()
    train, validation = source.train(), source.validation()
    assert (source.name, train.classes) == ("ants_and_bees", ("ants", "bees"))
    assert (train.names, train.labels.tolist()) == (TRAIN, [0, 1, 1])
    assert (validation.names, validation.labels.tolist()) == (VALIDATION, [0, 1])
    assert set(train.left_out.values()) == {".svg"}
    source.prepare()


@pytest.mark.skipif(not SHARED.is_dir(), reason="the photos are not there; HEADSTART_SHARED names their folder")
def test_public_photos() -> None:
    source = AntsAndBees(str(SHARED))
    train, validation = source.train(), source.validation()
    assert (len(train), len(validation)) == (245, 153)
    assert np.bincount(validation.labels).min() > 60
    assert train.read(0).mode == "RGB"
