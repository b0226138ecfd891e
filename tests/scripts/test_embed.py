"""`headstart embed`: other programs read its files, which hold what `headstart.embed` returns."""

import hashlib
import json
import resource
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors import safe_open

import headstart
from headstart.__main__ import main
from headstart.datamodules import DrawnPets
from headstart.modules.networks.backbone import build_backbone
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.scripts import feature_files
from headstart.scripts.feature_files import SUFFIXES
from headstart.tests.material.mistakes import error_line

# In the order in which they are listed. One begins like a formula, one has bytes that are no UTF-8.
NAMES = ("=a/1.png", "=a/2.png", "b/10.png", "b/broken.png", 'b/ü, "x".png', "b/\udcff.png")
WRITTEN = (*NAMES[:-1], "b/\\udcff.png")
LABELS = (0, 0, 1, 1, 1, 1)
BROKEN = 3


@pytest.fixture(autouse=True)
def pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared_cache: None) -> None:
    """Write pictures of two classes, of which one cannot be decoded."""
    monkeypatch.chdir(tmp_path)
    photos = DrawnPets(train_size=6, validation_size=2).train()
    for index, name in enumerate(NAMES):
        path = Path("pictures", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        photos.read(index).save(path)
    Path("pictures", NAMES[BROKEN]).write_bytes(b"no picture")


def run(*options: str, pictures: str = "pictures") -> None:
    main(["embed", pictures, "--backbone.weights=embedded", "--num_workers=0", *options])


def expected() -> NDArray[np.float32]:
    """Return the features, NaN for the picture that cannot be decoded."""
    readable = [Path("pictures", name) for name in NAMES if name != NAMES[BROKEN]]
    features = headstart.embed(readable, {"weights": "embedded"}, num_workers=0)
    return np.insert(features, BROKEN, np.nan, axis=0)


def read(path: Path) -> tuple[NDArray[Any], dict[str, list[Any]], dict[str, Any]]:
    """Read features, the other columns and what is said of their origin with other programs."""
    if path.suffix == ".parquet":
        table = pytest.importorskip("pyarrow.parquet").read_table(path)
        kind = table["features"].type.value_type.to_pandas_dtype()
        columns = table.drop_columns(["features"]).to_pydict()
        return np.array(table["features"].to_pylist(), kind), columns, json.loads(table.schema.metadata[b"about"])
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            columns = {name: arrays[name].tolist() for name in arrays.files}
            return arrays["features"], columns, json.loads(columns["about"])
    with safe_open(path, "np") as file:
        about, classes = json.loads(file.metadata()["about"]), ["", *json.loads(file.metadata()["about"])["classes"]]
        labels = file.get_tensor("label").tolist()
        columns = {
            "name": json.loads(file.metadata()["about"])["names"],
            "label": labels,
            "class": [classes[label + 1] for label in labels],
            "sha256": [bytes(each).hex() for each in file.get_tensor("sha256")],
            "readable": file.get_tensor("readable").tolist(),
        }
        return file.get_tensor("features"), columns, about


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_features_are_those_of_python_in_the_order_of_the_pictures(
    suffix: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Two pictures in a row group.
    monkeypatch.setattr(feature_files, "CHUNK_BYTES", 2 * 4 * 1280)
    path = tmp_path / f"some/out{suffix}"
    run(f"--export={path}")
    features, columns, about = read(path)
    assert features.dtype == np.float32
    np.testing.assert_array_equal(features, expected())
    assert columns["name"] == list(WRITTEN)
    assert columns["label"] == list(LABELS)
    assert columns["class"] == ["=a"] * 2 + ["b"] * 4
    assert columns["sha256"] == [hashlib.sha256(Path("pictures", name).read_bytes()).hexdigest() for name in NAMES]
    assert columns["readable"] == [name != NAMES[BROKEN] for name in NAMES]

    backbone = build_backbone(BackboneSpec(weights="embedded").network(0))
    assert about["weights_sha256"] == backbone.digest()
    assert about["preprocessing"]["crop"] == backbone.preprocessing.crop == 64
    assert about["classes"] == ["=a", "b"]
    before = path.read_bytes()
    line = error_line(capsys, lambda: run(f"--export={path}"))
    assert line == f"error: export: '{path}' exists; choose another file, or replace it with --overwrite=true"
    run(f"--export={path}", "--overwrite")
    assert path.read_bytes() == before


def test_a_second_call_computes_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADSTART_CACHE", "cache")
    run()
    assert "6 pictures: 6 computed, 0 reused" in capsys.readouterr().out
    DrawnPets(train_size=8, validation_size=2).train().read(7).save("pictures/b/11.png")
    run("--export=out.npz")
    assert "7 pictures: 1 computed, 6 reused" in capsys.readouterr().out


def test_unreadable_pictures_are_named_or_end_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    line = "1 of 6 cannot be decoded: b/broken.png (no picture of a known format); "
    run()
    assert f"WARNING: {line}their features are NaN in exported files" in capsys.readouterr().out
    stopped = error_line(capsys, lambda: run("--export=out.npz", "--on_bad_image=stop"))
    assert stopped == f"error: pictures: {line}repair or remove them, or skip them with --on_bad_image=skip"
    assert not Path("out.npz").exists()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_full_disk_leaves_nothing_half_written(
    suffix: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run()
    capsys.readouterr()
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3 * 4 * 1280, limit[1]))
        line = error_line(capsys, lambda: run(f"--export=out/file{suffix}"), code=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, ignored)
    assert line == f"error: export: 'out/file{suffix}' cannot be written (File too large); choose another file"
    assert list((tmp_path / "out").iterdir()) == []


MISTAKES: dict[tuple[str, ...], str] = {
    ("--export=out.csv",): "export: 'out.csv' is given; endings are .npz, .safetensors, .parquet",
    ("--ray=auto", "--device=cuda"): "precision: the best one on cuda of the cluster is not known here",
    ("--device=mps",): "device: torch cannot use mps on this machine; choose another",
    ("--export=out.parquet",): "export: .parquet needs pyarrow; pip install 'headstart[datasets]'",
}


def test_mistakes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    for options, message in MISTAKES.items():
        assert error_line(capsys, partial(run, *options)).startswith(f"error: {message}"), options
    line = error_line(capsys, lambda: run(pictures="nowhere"))
    assert line.startswith("error: pictures: there is no folder nowhere")
