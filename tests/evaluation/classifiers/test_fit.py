"""`headstart fit` and `headstart predict`: what they write, and what they say about unusual photos."""

import csv
import io
import json
import os
import shutil
from contextlib import redirect_stdout
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from safetensors.torch import load_file, save_file

import headstart
from headstart.__main__ import main
from headstart.output.errors import UserError
from headstart.tests.conftest import write_photos
from headstart.tests.material.blank_figures import blank_figures

BACKBONE = (
    "{name: mobilenet_v2, weights: random, model_args: {width_mult: 0.25}, preprocessing: {resize: 32, crop: 32}}"
)
OPTIONS = ["--features.num_workers=0", "--orderings=4", f"--backbones=[{BACKBONE}]"]


@pytest.fixture
def photos(photo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of class folders `dark` and `light`, of 12 photos each, in which the test begins."""
    monkeypatch.chdir(tmp_path)
    return photo_folder / "train"


def run(*arguments: object) -> None:
    with blank_figures():
        main([*map(str, arguments)])


def fail(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    with pytest.raises(SystemExit) as caught:
        run(*arguments)
    assert caught.value.code == 1
    # On a busy machine, lines of progress come first.
    *_, line = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    return line


def read_results(folder: str = "runs/fit") -> dict[str, Any]:
    document: dict[str, Any] = json.loads(Path(folder, "results.json").read_text())
    return document


def read_predictions() -> list[dict[str, str]]:
    return [*csv.DictReader(Path("predictions.csv").read_text().splitlines())]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fit a classifier once; what is printed lies beside its files."""
    folder = tmp_path_factory.mktemp("fit")
    photos, printed = write_photos(folder / "pictures") / "train", io.StringIO()
    with redirect_stdout(printed):
        run("fit", photos, *OPTIONS, f"--output={folder / 'fit'}", f"--features.cache_dir={folder / 'cache'}")
    (folder / "printed").write_text(printed.getvalue())
    return folder / "fit"


def test_fit_and_predict(fitted: Path, photos: Path) -> None:
    document = read_results(str(fitted))
    assert document["classes"] == {"dark": 12, "light": 12}
    low, high = document["expected_accuracy"]["interval"]
    assert low < document["expected_accuracy"]["estimate"] < high
    assert f"chosen: {document['method']}" in (fitted.parent / "printed").read_text()
    assert [point["labels"] for point in document["curve"]] == [2, 4, 6, 8, 12, 16]
    assert np.sum(document["confusion"], 1) == pytest.approx([1, 1], abs=1e-5)
    written = {"classifier", "photos.csv", "report.md", "results.json"}
    assert {path.name for path in fitted.iterdir()} == written
    assert {path.name for path in (fitted / "classifier").iterdir()} == {"classifier.json", "head.safetensors"}

    predict = ["predict", fitted / "classifier", photos, "--output=predictions.csv", "--features.num_workers=0"]
    run(*predict)
    rows = read_predictions()
    assert len(rows) == 24
    assert all(0.5 <= float(row["probability"]) <= 1 for row in rows)
    assert np.mean([row["photo"].startswith(row["class"]) for row in rows]) > 0.9

    run(*predict, "--probabilities=all", "--overwrite=true")
    for row, whole in zip(rows, read_predictions(), strict=True):
        shares = {name: float(whole[f"probability of {name}"]) for name in ("dark", "light")}
        assert sum(shares.values()) == pytest.approx(1, abs=2e-4)
        assert (max(shares, key=shares.__getitem__), whole["probability"]) == (row["class"], row["probability"])

    classifier = headstart.load_classifier(fitted)
    probabilities = classifier.predict_probabilities(photos / "dark", num_workers=0)
    assert probabilities.sum(1) == pytest.approx(np.ones(12))
    assert [*classifier.predict(photos / "dark", num_workers=0)] == [
        row["class"] for row in rows if row["photo"].startswith("dark")
    ]


def test_several_backbones_are_tried(photos: Path) -> None:
    run("fit", photos, *OPTIONS[:2], f"--backbones=[{BACKBONE}, {BACKBONE.replace('0.25', '0.35')}]")
    document = read_results()
    # A random network has no classifier of source classes, which one of the eight methods needs.
    assert len(document["methods"]) == 2 * 7
    assert len({trial["backbone"] for trial in document["methods"]}) == 2


def test_a_csv_file_lists_photos(photos: Path) -> None:
    lines = [f"{path.relative_to(photos)},{path.parent.name}" for path in sorted(photos.rglob("*.jpg"))]
    (photos / "labels.csv").write_text("\n".join(["path,label", *lines]))
    run("fit", photos / "labels.csv", *OPTIONS)
    assert read_results()["photos"] == 24


def test_the_same_photos_give_the_same_results_and_those_of_others_stay(
    fitted: Path, photos: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("fit", photos, *OPTIONS)
    first, again = read_results(str(fitted)), read_results()
    assert {**first, "seconds": 0, "dataset": ""} == {**again, "seconds": 0, "dataset": ""}
    before = Path("runs/fit/classifier/head.safetensors").read_bytes()
    next((photos / "dark").iterdir()).unlink()
    assert "another configuration (photos_sha256)" in fail(capsys, "fit", photos, *OPTIONS)
    assert Path("runs/fit/classifier/head.safetensors").read_bytes() == before


def test_copies_photos_that_cannot_be_decoded_and_a_class_of_one(photos: Path) -> None:
    shutil.copy(photos / "dark" / "0.jpg", photos / "dark" / "copy.jpg")
    (photos / "light" / "0.jpg").rename(photos / "light" / os.fsdecode(b"bad\xff.jpg"))
    shutil.copy(photos / "dark" / "1.jpg", photos / "light" / "same.jpg")
    with Image.open(photos / "light" / "2.jpg") as photo:
        photo.resize((2 * photo.width, 2 * photo.height)).save(photos / "light" / "larger.jpg", quality=95)
    (photos / "light" / "broken.jpg").write_bytes(b"no photo")
    (photos / "dark" / "a.jpg").touch()
    (photos / "odd").mkdir()
    Image.effect_noise((40, 40), 60).convert("RGB").save(photos / "odd" / "0.png")
    run("fit", photos, *OPTIONS, "--near_duplicates=true")
    document = read_results()
    assert document["repeated"] == [["dark/0.jpg", "dark/copy.jpg"]]
    assert document["contradicting"] == [["dark/1.jpg", "light/same.jpg"]]
    assert document["alike"] == [["light/2.jpg", "light/larger.jpg"]]
    assert [*document["unreadable"]] == ["dark/a.jpg", "light/broken.jpg"]
    assert document["classes"] == {"dark": 12, "light": 13, "odd": 1}
    assert document["warnings"][0].startswith("class odd has one photo: its accuracy cannot be estimated")

    run("predict", "runs/fit/classifier", photos, "--features.num_workers=0")
    rows = list(csv.DictReader(Path("runs/fit/photos.csv").read_text().splitlines()))
    for names in ({row["photo"] for row in rows}, {row["photo"] for row in read_predictions()}):
        assert r"light/bad\udcff.jpg" in names
    [broken] = [row for row in read_predictions() if row["photo"] == "light/broken.jpg"]
    assert broken["class"] == broken["probability"] == ""


def test_mistakes_leave_nothing(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unknown = f"{BACKBONE[:-1]}, size: 3}}"
    missing = "{name: mobilenet_v2, weights: none.safetensors}"
    within = f"output: '{photos}/runs' has photos in it, or lies in their folder"
    needed = "photos: give a folder with one folder of photos per class, or --demo=true"
    mistakes: list[tuple[list[object], str]] = [
        ([photos, "--demo=true"], f"{needed}, and not both"),
        (["nofolder"], "photos: there is no folder nofolder; give the folder that holds the class folders"),
        ([photos, f"--output={photos / 'runs'}"], within),
        ([photos, f"--backbones=[{unknown}]"], f"backbones: '[{unknown}]' is no network; give a name, or '{{name: "),
        ([photos, f"--backbones=[{missing}]"], "backbones: "),
    ]
    for words, message in mistakes:
        assert fail(capsys, "fit", *words[:1], *OPTIONS, *words[1:]).startswith(f"error: {message}")

    for path in (photos / "dark").iterdir():
        path.write_bytes(path.name.encode())
    assert "photos: no photo of class dark can be decoded" in fail(capsys, "fit", photos, *OPTIONS)
    for name in ("dark", "light"):
        for path in sorted((photos / name).iterdir())[1:]:
            path.unlink()
    (photos / "dark" / "0.jpg").write_bytes((photos / "light" / "0.jpg").read_bytes() + b"other")
    assert "every class has one photo, and an accuracy needs two" in fail(capsys, "fit", photos, *OPTIONS)
    assert not Path("runs").exists()


def test_damaged_classifiers(fitted: Path, photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(shutil.copytree(fitted / "classifier", "classifier"))
    text, tensors = (folder / "classifier.json").read_text(), load_file(folder / "head.safetensors")
    document = json.loads(text)
    backbone = {**document["backbone"], "weights_sha256": "0"}
    for content, message in (
        (json.dumps({**document, "backbone": backbone}), "now holds other weights"),
        (json.dumps({**document, "schema_version": 2}), "has schema 2, but this version of Headstart reads schema 1"),
        (text[:40], "holds no classifier that can be read"),
    ):
        (folder / "classifier.json").write_text(content)
        assert message in fail(capsys, "predict", folder, photos, "--features.num_workers=0")

    weights = {**document["backbone"], "weights": "/nowhere/w.pth"}
    for change, message in (
        ({"classes": [*document["classes"], "more"]}, "its tensors are not those of the head"),
        ({"head": {"representation": "nonsense"}}, "its tensors are not those of the head"),
        ({"backbone": weights}, "weights: there is no file '/nowhere/w.pth' any more; name it with --weights=FILE"),
    ):
        (folder / "classifier.json").write_text(json.dumps({**document, **change}))
        assert message in fail(capsys, "predict", folder, photos)

    (folder / "classifier.json").write_text(text)
    save_file({**tensors, "bias": tensors["bias"][:1]}, folder / "head.safetensors")
    assert "its tensors are not those of the head" in fail(capsys, "predict", folder, photos)
    save_file({name: tensor for name, tensor in tensors.items() if name != "bias"}, folder / "head.safetensors")
    with pytest.raises(UserError, match=r"holds no classifier that can be read .*bias"):
        headstart.load_classifier(folder)
    assert "nowhere holds no classifier" in fail(capsys, "predict", "nowhere", photos)
    assert not Path("predictions.csv").exists()


def test_onnx_names_its_extra(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not all(map(find_spec, ("onnx", "onnxruntime", "onnxscript"))):
        assert "pip install 'headstart[onnx]'" in fail(capsys, "fit", photos, *OPTIONS, "--onnx")
        assert not Path("runs").exists()
        pytest.skip("needs the extra onnx")
    run("fit", photos, *OPTIONS, "--onnx")
    path = Path("runs/fit/classifier/model.onnx")
    assert path.stat().st_size > 100_000
    metadata = {entry.key: entry.value for entry in import_module("onnx").load(path).metadata_props}
    assert json.loads(metadata["classes"]) == ["dark", "light"]
    preprocessing = headstart.load_classifier("runs/fit/classifier").backbone.network(0).preprocessing
    assert {"crop", "mean", "resize", "std"} <= metadata.keys()
    assert preprocessing is None or json.loads(metadata["crop"]) == preprocessing.crop
