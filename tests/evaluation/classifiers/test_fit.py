"""`headstart fit` and `headstart predict`: what they write, and what they say about unusual photos."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from safetensors.torch import load_file, save_file

import headstart
from headstart.__main__ import main
from headstart.output.errors import UserError
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


def test_fit_and_predict(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("fit", photos, *OPTIONS)
    printed = capsys.readouterr().out
    document = read_results()
    assert document["classes"] == {"dark": 12, "light": 12}
    low, high = document["expected_accuracy"]["interval"]
    assert low < document["expected_accuracy"]["estimate"] < high
    assert f"chosen: {document['method']}" in printed
    assert [point["labels"] for point in document["curve"]] == [2, 4, 6, 8, 12, 16]
    assert np.sum(document["confusion"], 1) == pytest.approx([1, 1], abs=1e-5)
    assert {path.name for path in Path("runs/fit").iterdir()} == {
        *("answer.png", "classifier", "photos.csv", "report.md", "results.json")
    }
    assert {path.name for path in Path("runs/fit/classifier").iterdir()} == {"classifier.json", "head.safetensors"}

    run("predict", "runs/fit/classifier", photos, "--output=predictions.csv", "--features.num_workers=0")
    rows = read_predictions()
    assert len(rows) == 24
    assert all(0.5 <= float(row["probability"]) <= 1 for row in rows)
    assert np.mean([row["photo"].startswith(row["class"]) for row in rows]) > 0.9

    options = ("--probabilities=all", "--overwrite=true", "--features.num_workers=0")
    run("predict", "runs/fit/classifier", photos, "--output=predictions.csv", *options)
    for row, whole in zip(rows, read_predictions(), strict=True):
        shares = {name: float(whole[f"probability of {name}"]) for name in ("dark", "light")}
        assert sum(shares.values()) == pytest.approx(1, abs=2e-4)
        assert (max(shares, key=shares.__getitem__), whole["probability"]) == (row["class"], row["probability"])

    classifier = headstart.load_classifier("runs/fit")
    found = classifier.predict_probabilities(photos / "dark", num_workers=0)
    assert found.sum(1) == pytest.approx(np.ones(12))
    assert [*classifier.predict(photos / "dark", num_workers=0)] == [
        row["class"] for row in rows if row["photo"].startswith("dark")
    ]


def test_the_same_command_gives_the_same_files(photos: Path) -> None:
    run("fit", photos, *OPTIONS)
    first = read_results()
    run("fit", photos, *OPTIONS)
    again = read_results()
    assert {**first, "seconds": 0} == {**again, "seconds": 0}


def test_several_backbones_are_tried(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = BACKBONE.replace("0.25", "0.35")
    run("fit", photos, *OPTIONS[:2], f"--backbones=[{BACKBONE}, {other}]")
    # A random network has no classifier of source classes, which one of the eight methods needs.
    document = read_results()
    assert len(document["methods"]) == 2 * 7
    # The chosen method on the other network is another one.
    printed = " ".join(capsys.readouterr().out.split())
    others, _, rest = printed.partition("not significantly worse: ")[2].partition("recommended backbone: ")
    assert others.count("mobilenet_v2") == sum(each["tied"] for each in document["methods"]) - 1
    near = {each["backbone"] for each in document["methods"] if each["tied"]}
    worse = {each["backbone"] for each in document["methods"]} - near
    assert rest.startswith(
        f"{document['backbone']}; significantly worse with every method: {', '.join(worse) or 'none'}"
    )


def test_a_csv_file_lists_photos(photos: Path) -> None:
    lines = [f"{path.relative_to(photos)},{path.parent.name}" for path in sorted(photos.rglob("*.jpg"))]
    (photos / "labels.csv").write_text("\n".join(["path,label", *lines]))
    run("fit", photos / "labels.csv", *OPTIONS)
    assert read_results()["photos"] == 24


def test_results_of_other_photos_stay(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("fit", photos, *OPTIONS)
    Path("runs/fit/classifier/model.onnx").touch()
    before = Path("runs/fit/classifier/head.safetensors").read_bytes()
    next((photos / "dark").iterdir()).unlink()
    assert "another configuration (photos_sha256)" in fail(capsys, "fit", photos, *OPTIONS)
    assert Path("runs/fit/classifier/head.safetensors").read_bytes() == before
    run("fit", photos, *OPTIONS, "--overwrite=true")
    assert read_results()["photos"] == 23
    assert not Path("runs/fit/classifier/model.onnx").exists()


def test_one_photo_in_a_class(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (photos / "odd").mkdir()
    Image.effect_noise((40, 40), 60).convert("RGB").save(photos / "odd" / "0.png")
    run("fit", photos, *OPTIONS)
    assert read_results()["warnings"] == [
        "class odd has one photo: its accuracy cannot be estimated, and the expected accuracy is that of the other "
        "classes; add photos"
    ]
    assert "WARNING: class odd has one photo" in capsys.readouterr().out
    assert headstart.load_classifier("runs/fit").classes == ["dark", "light", "odd"]


def test_copies_and_photos_that_cannot_be_decoded(photos: Path) -> None:
    shutil.copy(photos / "dark" / "0.jpg", photos / "dark" / "copy.jpg")
    shutil.copy(photos / "dark" / "1.jpg", photos / "light" / "same.jpg")
    with Image.open(photos / "light" / "2.jpg") as photo:
        photo.resize((2 * photo.width, 2 * photo.height)).save(photos / "light" / "larger.jpg", quality=95)
    (photos / "light" / "broken.jpg").write_bytes(b"no photo")
    for name in ("dark/a.jpg", "light/b.jpg"):
        (photos / name).touch()
    run("fit", photos, *OPTIONS)
    assert read_results()["alike"] == []
    run("fit", photos, *OPTIONS, "--near_duplicates=true", "--overwrite=true")
    document = read_results()
    assert document["repeated"] == [["dark/0.jpg", "dark/copy.jpg"]]
    assert document["contradicting"] == [["dark/1.jpg", "light/same.jpg"]]
    assert document["alike"] == [["light/2.jpg", "light/larger.jpg"]]
    assert [*document["unreadable"]] == ["dark/a.jpg", "light/b.jpg", "light/broken.jpg"]
    assert document["classes"] == {"dark": 12, "light": 13}

    run("predict", "runs/fit/classifier", photos, "--features.num_workers=0")
    [broken] = [row for row in read_predictions() if row["photo"] == "light/broken.jpg"]
    assert broken["class"] == broken["probability"] == ""


@pytest.mark.parametrize("mistake", ["two cases", "one class", "one photo each", "no decodable photo", "nothing given"])
def test_bad_photos_leave_nothing(mistake: str, photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [photos]
    if mistake == "two cases":
        if (photos / "DARK").exists():
            pytest.skip("the file system knows no cases")
        shutil.copytree(photos / "dark", photos / "DARK")
        expected = f"photos.root: the class folders DARK and dark of {photos} differ in upper and lower case alone"
    elif mistake == "one class":
        shutil.rmtree(photos / "dark")
        expected = (
            f"photos.root: {photos} must hold photos of two or more classes in a folder each; those with photos are"
        )
    elif mistake == "one photo each":
        for path in (path for folder in photos.iterdir() for path in sorted(folder.iterdir())[1:]):
            path.unlink()
        expected = "photos: every class has one photo, and an accuracy needs two of a class; add photos"
    elif mistake == "no decodable photo":
        for path in (photos / "dark").iterdir():
            path.write_bytes(path.name.encode())
        expected = "photos: no photo of class dark can be decoded"
    else:
        given, expected = [], "photos: give a folder with one folder of photos per class, or --demo=true"
    assert fail(capsys, "fit", *given, *OPTIONS).startswith(f"error: {expected}")
    assert not Path("runs").exists()


def test_damaged_classifiers(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "nowhere holds no classifier" in fail(capsys, "predict", "nowhere", photos)
    run("fit", photos, *OPTIONS)
    capsys.readouterr()
    folder = Path("runs/fit/classifier")
    text = (folder / "classifier.json").read_text()

    document = json.loads(text)
    document["backbone"]["weights_sha256"] = "0"
    (folder / "classifier.json").write_text(json.dumps(document))
    assert "now holds other weights" in fail(capsys, "predict", folder, photos, "--features.num_workers=0")
    (folder / "classifier.json").write_text(json.dumps({**json.loads(text), "schema_version": 2}))
    assert "has schema 2, but this version of Headstart reads schema 1" in fail(capsys, "predict", folder, photos)
    (folder / "classifier.json").write_text(text[:40])
    assert "cannot be read" in fail(capsys, "predict", folder, photos)

    (folder / "classifier.json").write_text(text)
    tensors = load_file(folder / "head.safetensors")
    save_file({name: tensor for name, tensor in tensors.items() if name != "bias"}, folder / "head.safetensors")
    with pytest.raises(UserError, match="does not hold the head"):
        headstart.load_classifier(folder)
    (folder / "head.safetensors").unlink()
    assert "head.safetensors is missing" in fail(capsys, "predict", folder, photos)
    assert not Path("predictions.csv").exists()


def test_onnx_names_its_extra(photos: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        import onnx  # type: ignore[import-not-found, unused-ignore]
        import onnxruntime  # type: ignore[import-not-found, unused-ignore]  # noqa: F401
        import onnxscript  # type: ignore[import-not-found, unused-ignore]  # noqa: F401
    except ImportError:
        assert "pip install 'headstart[onnx]'" in fail(capsys, "fit", photos, *OPTIONS, "--onnx")
        assert not Path("runs").exists()
        pytest.skip("needs the extra onnx")
    run("fit", photos, *OPTIONS, "--onnx")
    path = Path("runs/fit/classifier/model.onnx")
    assert path.stat().st_size > 100_000
    known = {each.key: each.value for each in onnx.load(path).metadata_props}
    assert json.loads(known["classes"]) == ["dark", "light"]
    preprocessing = headstart.load_classifier("runs/fit/classifier").backbone.network(0).preprocessing
    assert {"crop", "mean", "resize", "std"} <= known.keys()
    assert preprocessing is None or json.loads(known["crop"]) == preprocessing.crop
