"""A folder of dirt: every command reads the same files, says what it leaves out, and counts add up.

The pictures are of two colours, so that a file that was read as another one would be predicted wrong.
"""

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from headstart.__main__ import main
from headstart.datamodules.photos.class_folders import UnsplitClassFolders
from headstart.datamodules.photos.picture_decoding import suffixes
from headstart.tests.conftest import list_options
from headstart.tests.material.blank_figures import blank_figures

NETWORK = "{name: mobilenet_v2, weights: random, model_args: {width_mult: 0.25}, preprocessing: {resize: 32, crop: 32}}"
# A plug-in of Pillow for files that begin as HEIC does, with a PNG in place of its compressed pixels.
PLUG_IN = """
import io
from PIL import Image, PngImagePlugin

def register_heif_opener():
    Image.init()
    opened = lambda file, name=None: PngImagePlugin.PngImageFile(io.BytesIO(file.read()[12:]))
    Image.register_open("HEIF", opened, lambda start: start[4:12] == b"ftypheic")
    Image.register_extension("HEIF", ".heic")
"""


def photo(colour: str, seed: int, mode: str = "RGB") -> Image.Image:
    """Return noise around a colour."""
    noise = np.random.default_rng(seed).integers(0, 60, (40, 30, 3))
    base = np.array({"red": (190, 20, 20), "blue": (20, 20, 190)}[colour])
    return Image.fromarray((base + noise).astype(np.uint8)).convert(mode)


def encoded(picture: Image.Image, form: str, **options: Any) -> bytes:
    file = io.BytesIO()
    picture.save(file, form, **options)
    return file.getvalue()


def good_files() -> dict[str, bytes]:
    """Return files that every command reads, by name."""
    turned = Image.Exif()
    turned[0x0112] = 6
    deep = np.full((9, 9), 65_535 // 2, np.uint16)
    files = {f"red/{n}.jpg": encoded(photo("red", n), "JPEG") for n in range(6)}
    files |= {f"blue/{n}.jpg": encoded(photo("blue", n), "JPEG") for n in range(6)}
    files |= {
        "red/cmyk.jpg": encoded(photo("red", 10, "CMYK"), "JPEG"),
        "red/turned.jpg": encoded(photo("red", 11), "JPEG", exif=turned),
        "red/palette.png": encoded(photo("red", 12).quantize(16), "PNG", transparency=b"\x00\x80\xff"),
        "red/moving.gif": encoded(photo("red", 13, "P"), "GIF", save_all=True, append_images=[photo("blue", 14, "P")]),
        "red/a name with spaces.JPG": encoded(photo("red", 15), "JPEG"),
        "red/two\nlines.png": encoded(photo("red", 16), "PNG"),
        "blue/写真 Ünï.webp": encoded(photo("blue", 17), "WEBP", lossless=True),
        "blue/deep.tif": encoded(Image.fromarray(deep), "TIFF"),
        # The same photo in two classes.
        "blue/same.jpg": encoded(photo("red", 0), "JPEG"),
        "single/1.png": encoded(photo("blue", 18), "PNG"),
    }
    return files


BAD = {
    "red/corrupt.jpg": encoded(photo("red", 20), "JPEG")[:-300],
    "red/empty.jpg": b"",
    "blue/empty.jpg": b"",
    "blue/text.jpg": b"Not a photo.",
}
HEIC = {"blue/phone.heic": b"\0\0\0\x0cftypheic" + encoded(photo("blue", 30), "PNG")}
LEFT_OUT = {
    "red/nested/deep.jpg": "photo in a nested folder",
    "stray.jpg": "photo beside the class folders",
    "red/notes.txt": ".txt",
    "blue/Thumbs": "without an ending",
    "none": "folder without photos",
    "red/loop": "link loop",
    "red/outside.jpg": "link out of the folder",
    "red/lost.jpg": "dangling link",
}


def write_dirt(root: Path) -> Path:
    """Write the folder, without permission to write into it."""
    for name, content in (good_files() | BAD | HEIC).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    for name in ("none", "red/nested"):
        (root / name).mkdir()
    for name in ("red/nested/deep.jpg", "stray.jpg", "red/notes.txt", "blue/Thumbs"):
        (root / name).write_bytes(encoded(photo("red", 40), "JPEG"))
    for name in (".DS_Store", "red/.DS_Store", "red/._0.jpg"):
        (root / name).write_bytes(b"\0\0\0\1Bud1")
    (root.parent / "outside.jpg").write_bytes(encoded(photo("red", 41), "JPEG"))
    for name, target in (("loop", ".."), ("outside.jpg", root.parent / "outside.jpg"), ("lost.jpg", "nowhere.jpg")):
        (root / "red" / name).symlink_to(target)
    for folder in (root, *(path for path in root.rglob("*") if path.is_dir() and not path.is_symlink())):
        folder.chmod(0o555)
    return root


@pytest.fixture(scope="module")
def dirt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = write_dirt(tmp_path_factory.mktemp("dirt") / "photos")
    yield root
    for path in (root, *root.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a command in the test's folder, and return what it prints."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> str:
        with blank_figures():
            main([*map(str, arguments)])
        return capsys.readouterr().out

    return call


def expected(in_folders: bool = True) -> dict[str, int]:
    """Return the numbers of files left out; a photo in the folder itself is read where there need be no classes."""
    kinds = Counter(reason for name, reason in LEFT_OUT.items() if in_folders or name != "stray.jpg")
    return dict(kinds) | ({} if ".heic" in suffixes() else {".heic": 1})


def line_of(printed: str, option: str) -> str:
    [line] = [line for line in printed.splitlines() if line.startswith(f"{option}: ") and "left out" in line]
    return line


def read_names() -> set[str]:
    """Return the names of the files that are listed, those that cannot be decoded included."""
    return {*good_files(), *BAD} | ({*HEIC} if ".heic" in suffixes() else set())


def test_every_file_is_read_or_left_out_with_a_reason(dirt: Path) -> None:
    photos = UnsplitClassFolders(str(dirt)).train()
    assert set(photos.names) == read_names()
    files = {path.relative_to(dirt).as_posix() for path in dirt.rglob("*") if path.is_symlink() or path.is_file()}
    visible = {name for name in files if not Path(name).name.startswith(".")}
    assert visible | {"none"} == {*photos.names, *photos.left_out}
    unreadable = set()
    for index, name in enumerate(photos.names):
        try:
            mean = np.asarray(photos.read(index)).reshape(-1, 3).mean(0)
        except OSError:
            unreadable.add(name)
            continue
        if name.endswith("deep.tif"):
            assert mean.tolist() == [127] * 3
        else:
            is_red = name.startswith("red/") or name == "blue/same.jpg"
            assert (mean[0] > 150 > mean[2]) == is_red, name
            assert (mean[2] > 150 > mean[0]) != is_red, name
    assert unreadable == set(BAD)
    assert photos.read(photos.names.index("red/turned.jpg")).size == (40, 30)


def test_fit_and_predict(dirt: Path, run: Callable[..., str]) -> None:
    options = ["--features.num_workers=0"]
    printed = run("fit", dirt, "--orderings=2", f"--backbones=[{NETWORK}]", *options)
    document = json.loads(Path("runs/fit/results.json").read_text())
    assert set(document["unreadable"]) == set(BAD)
    assert document["files_left_out"] == expected()
    assert document["contradicting"] == [["blue/same.jpg", "red/0.jpg"]]
    assert document["repeated"] == []
    assert document["photos"] == len(read_names()) - len(BAD)
    assert line_of(printed, "photos").startswith(f"photos: {sum(expected().values())} files left out: ")

    printed = run("predict", "runs/fit/classifier", dirt, *options)
    with Path("predictions.csv").open(newline="", encoding="utf-8") as file:
        rows = {row["photo"]: row["class"] for row in csv.DictReader(file)}
    assert set(rows) == {*read_names(), "stray.jpg"}
    assert {name for name, found in rows.items() if not found} == set(BAD)
    assert "photo in a nested folder (1)" in line_of(printed, "photos")
    assert f"WARNING: {len(BAD)} photos cannot be decoded" in printed


def test_embed(dirt: Path, run: Callable[..., str]) -> None:
    printed = run("embed", dirt, "--backbone.weights=embedded", "--num_workers=0", "--export=out.npz")
    with np.load("out.npz") as file:
        names, features = file["name"].tolist(), file["features"]
    assert set(names) == {*read_names(), "stray.jpg"}
    assert {name for name, each in zip(names, features, strict=True) if np.isnan(each).all()} == set(BAD)
    assert "dangling link (1)" in line_of(printed, "pictures")


def test_train(dirt: Path, tmp_path: Path, run: Callable[..., str]) -> None:
    root = tmp_path / "split"
    shutil.copytree(dirt, root / "train", symlinks=True)
    for seed, (name, colour) in enumerate((("red", "red"), ("blue", "blue"), ("single", "blue"))):
        (root / "validation" / name).mkdir(parents=True)
        for number in range(3):
            photo(colour, 100 + 10 * seed + number).save(root / "validation" / name / f"{number}.png")
    (tmp_path / "outside.jpg").touch()
    options = ["--data.on_bad_image=skip", "--data.on_duplicates=keep", "--trainer.default_root_dir=run"]
    printed = run("train", *list_options(root), *options, "--data.max_samples=12")
    document = json.loads(Path("run/results.json").read_text())
    protocol = document["protocol"]
    assert set(protocol["unreadable_photos"]) == {f"train/{name}" for name in BAD}
    assert [sorted(group) for group in protocol["duplicate_photos"]] == [
        ["train/blue/same.jpg (training)", "train/red/0.jpg (training)"]
    ]
    assert protocol["train_size"] == len(read_names()) - len(BAD)
    assert document["environment"]["files_left_out"] == expected()
    assert "folder without photos (1)" in line_of(printed, "data.photos")


def test_cka(dirt: Path, run: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HACKATHON_DATASET_ROOT", str(dirt.parent))
    printed = run("write-catalog", dirt, "--output=all.jsonl")
    lines = Path("all.jsonl").read_text().splitlines()
    names = {json.loads(line)["image_identifier"] for line in lines}
    assert names == {*read_names(), "stray.jpg", "red/nested/deep.jpg"} - {"red/two\nlines.png"}
    assert "name that the contract refuses (1)" in line_of(printed, "folder")

    readable = [line for line in lines if json.loads(line)["image_identifier"] not in BAD]
    Path("stimuli.jsonl").write_text("\n".join(readable))
    registry = Path(__file__).parents[1] / "configs" / "registry" / "embedded.json"
    given = ["--models=[drawn_objects, drawn_halfway]", f"--registry={registry}", "--extraction.num_workers=0"]
    run("cka", *given, "--catalog=stimuli.jsonl")
    assert json.loads(Path("runs/cka/cka.json").read_text())["n_stimuli"] == len(names) - len(BAD)


def test_heic_with_its_plug_in(dirt: Path, tmp_path: Path) -> None:
    (tmp_path / "pillow_heif.py").write_text(PLUG_IN)
    script = (
        "import sys, json; from headstart.datamodules import UnsplitClassFolders\n"
        "photos = UnsplitClassFolders(sys.argv[1]).train()\n"
        "index = photos.names.index('blue/phone.heic')\n"
        "print(json.dumps([photos.read(index).getpixel((0, 0)), sorted(photos.left_out)]))"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script, str(dirt)], env=environment, capture_output=True, text=True, check=True
    )
    pixel, left_out = json.loads(done.stdout)
    assert tuple(pixel) == photo("blue", 30).getpixel((0, 0))
    assert left_out == sorted(LEFT_OUT)


def test_fewer_than_two_classes_remain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("red", "none"):
        (tmp_path / "photos" / name).mkdir(parents=True)
    photo("red", 1).save(tmp_path / "photos" / "red" / "1.png")
    with pytest.raises(SystemExit) as caught:
        main(["fit", str(tmp_path / "photos")])
    assert caught.value.code == 1
    *_, line = capsys.readouterr().err.splitlines()
    assert line.endswith("those with photos are red; left out: folder without photos (1)")
