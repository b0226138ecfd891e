"""`headstart embed`: other programs read its files, which hold what `headstart.embed` returns."""

import csv
import hashlib
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from numpy.typing import NDArray
from safetensors import safe_open

import headstart
from headstart.__main__ import main
from headstart.datamodules import DrawnPets
from headstart.datamodules.photos.given_pictures import read_pictures
from headstart.modules.networks.backbone import build_backbone
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.output.errors import UserError
from headstart.output.progress import Progress
from headstart.scripts import exported_features, feature_formats
from headstart.scripts.embed import find_root
from headstart.tests.material.mistakes import error_line

FORMATS = ("npy", "safetensors", "parquet")
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


def run(*options: str) -> None:
    main(["embed", "pictures", "--backbone.weights=embedded", "--num_workers=0", *options])


def expected() -> NDArray[np.float32]:
    """Return the features, NaN for the picture that cannot be decoded."""
    readable = [Path("pictures", name) for name in NAMES if name != NAMES[BROKEN]]
    features = headstart.embed(readable, {"weights": "embedded"}, num_workers=0)
    return np.insert(features, BROKEN, np.nan, axis=0)


def read(folder: Path, chosen: str) -> tuple[NDArray[Any], list[dict[str, Any]]]:
    """Read features and index with other programs."""
    if chosen == "parquet":
        table = pytest.importorskip("pyarrow.parquet").read_table(folder / "features.parquet")
        kind = table["features"].type.value_type.to_pandas_dtype()
        return np.array(table["features"].to_pylist(), kind), table.drop_columns(["features"]).to_pylist()
    with (folder / "index.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if chosen == "npy":
        return np.load(folder / "features.npy", mmap_mode="r"), rows
    shards = []
    for path in sorted(folder.glob("features-*.safetensors")):
        with safe_open(path, "np") as shard:
            shards.append(shard.get_tensor("features"))
    return np.concatenate(shards), rows


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("chosen", FORMATS)
def test_features_are_those_of_python_in_the_order_of_the_index(
    chosen: str, dtype: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Two pictures in a chunk, four in a file.
    monkeypatch.setattr(exported_features, "CHUNK", 2 * 4 * (1280 + 64))
    monkeypatch.setattr(feature_formats, "SHARD", 4 * 1280 * np.dtype(dtype).itemsize)
    run("--export=out", f"--format={chosen}", f"--dtype={dtype}")

    features, rows = read(tmp_path / "out", chosen)
    assert features.dtype == dtype
    np.testing.assert_array_equal(features, expected().astype(dtype))
    names, classes = list(WRITTEN), ["=a"] * 2 + ["b"] * 4
    if chosen != "parquet":
        # No formula of a spreadsheet.
        names[:2], classes[:2] = ["'=a/1.png", "'=a/2.png"], ["'=a"] * 2
    digests = [hashlib.sha256(Path("pictures", name).read_bytes()).hexdigest() for name in NAMES]
    readable = [name != NAMES[BROKEN] for name in NAMES]
    columns = {"index": range(6), "name": names, "label": LABELS, "class": classes}
    columns |= {"sha256": digests, "readable": readable}
    for name, column in columns.items():
        assert [str(row[name]) for row in rows] == list(map(str, column)), name

    files = sorted(path.name for path in (tmp_path / "out").glob("features*"))
    card = json.loads((tmp_path / "out" / "card.json").read_text())
    assert [each["name"] for each in card["files"]] == files
    assert len(files) == (2 if chosen == "safetensors" else 1)


@pytest.mark.parametrize("chosen", FORMATS)
def test_the_lines_of_the_card_read_the_features(chosen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if chosen == "parquet":
        pytest.importorskip("pyarrow")
    run("--export=out", f"--format={chosen}")
    page = (tmp_path / "out" / "README.md").read_text()
    found = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert found
    code = found[1]
    assert code.count("\n") == 3
    features = expected()
    monkeypatch.chdir("out")
    names: dict[str, Any] = {}
    exec(code, names)
    np.testing.assert_array_equal(names["features"], features)


def test_the_card(tmp_path: Path) -> None:
    run("--export=out")
    text = (tmp_path / "out" / "README.md").read_text()
    header = yaml.safe_load(text.split("---\n")[1])
    assert header["task_categories"] == ["image-feature-extraction"]
    assert header["size_categories"] == ["n<1K"]
    assert "- b/broken.png: no picture of a known format" in text

    card = json.loads((tmp_path / "out" / "card.json").read_text())
    backbone = build_backbone(BackboneSpec(weights="embedded").network(0))
    assert card["weights_sha256"] == backbone.digest()
    assert card["preprocessing"]["crop"] == backbone.preprocessing.crop == 64
    assert (card["pictures"], card["width"]) == (6, 1280)
    assert card["unreadable"] == {"b/broken.png": "no picture of a known format"}
    assert card["classes"] == ["=a", "b"]
    assert card["versions"]["torch"] == __import__("torch").__version__.partition("+")[0]

    # Its command writes the same files.
    before = contents(tmp_path / "out")
    command = shlex.split(card["command"])
    assert command[:3] == ["headstart", "embed", "pictures"]
    main(command[1:])
    assert contents(tmp_path / "out") == before


def test_a_second_call_computes_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADSTART_CACHE", "cache")
    run()
    assert "6 pictures: 6 computed, 0 reused" in capsys.readouterr().out
    DrawnPets(train_size=8, validation_size=2).train().read(7).save("pictures/b/11.png")
    run("--export=out")
    assert "7 pictures: 1 computed, 6 reused" in capsys.readouterr().out


def test_pictures_outside_of_folders_have_no_class(tmp_path: Path) -> None:
    Path("pictures/=a/1.png").rename("pictures/top.png")
    run("--export=out")
    _, rows = read(tmp_path / "out", "npy")
    assert {(row["label"], row["class"]) for row in rows} == {("", "")}
    assert json.loads((tmp_path / "out" / "card.json").read_text())["classes"] == []


def test_names_are_relative_to_what_was_given(tmp_path: Path) -> None:
    given = {
        "pictures": NAMES,
        "pictures/b/": [Path(name).name for name in NAMES[2:]],
        "pictures/b/10.png": ["10.png"],
        "list.csv": ["pictures/b/10.png", f"{tmp_path}/pictures/=a/1.png"],
    }
    Path("list.csv").write_text("\n".join(["path", *given["list.csv"]]))
    for pictures, names in given.items():
        listed = read_pictures(pictures)
        assert [name.removeprefix(find_root(pictures)) for name in listed.names] == [*names], pictures


def test_files_that_are_left_out_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("pictures/b/deep").mkdir()
    Path("pictures/b/10.png").rename("pictures/b/deep/10.png")
    Path("pictures/z.svg").touch()
    Path("pictures/b/y.\udcff").touch()
    run("--export=out")
    line = ".svg (1), .\\udcff (1), photo in a nested folder (1)"
    assert f"pictures: 3 files left out: {line}; z.svg, b/y.\\udcff, b/deep/10.png\n" in capsys.readouterr().out
    card = json.loads((tmp_path / "out" / "card.json").read_text())
    assert card["left_out"] == {".svg": 1, ".\\udcff": 1, "photo in a nested folder": 1}
    assert "left out: .svg (1), " in (tmp_path / "out" / "README.md").read_text()


def test_one_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["embed", "pictures/b/10.png", "--backbone.weights=embedded", "--num_workers=0", "--export=out"])
    assert capsys.readouterr().out.startswith("1 picture: ")
    assert "# Features of 1 picture by" in (tmp_path / "out" / "README.md").read_text()


def test_unreadable_pictures_are_named_or_end_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    line = "1 of 6 cannot be decoded: b/broken.png (no picture of a known format); "
    run()
    assert f"WARNING: {line}their features are NaN in exported files" in capsys.readouterr().out
    stopped = error_line(capsys, lambda: run("--export=out", "--on_bad_image=stop"))
    assert stopped == f"error: pictures: {line}repair or remove them, or skip them with --on_bad_image=skip"
    assert not Path("out").exists()


def test_other_files_are_never_replaced_unless_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    (folder / "README.md").write_text("mine")
    line = error_line(capsys, lambda: run("--export=out"))
    assert "README.md' holds results of another configuration (no card.json says which)" in line
    assert line.startswith("error: export: ")
    (folder / "README.md").unlink()

    run("--export=out", "--format=safetensors")
    before = contents(folder)
    for option, named in (("--format=npy", "format"), ("--dtype=float16", "dtype")):
        line = error_line(capsys, lambda option=option: run("--export=out", "--format=safetensors", option))  # type: ignore[misc]
        assert f"of another configuration ({named})" in line
    Path("pictures/b/10.png").unlink()
    line = error_line(capsys, lambda: run("--export=out", "--format=safetensors"))
    assert "of another configuration (pictures_sha256)" in line
    assert contents(folder) == before

    run("--export=out", "--overwrite")
    assert {*contents(folder)} == {"notes.txt", "README.md", "card.json", "features.npy", "index.csv"}


@pytest.fixture
def full_disk() -> Iterator[None]:
    """Let no file grow beyond some rows, as on a full disk."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3 * 4 * 1280, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("chosen", FORMATS)
def test_a_full_disk_leaves_nothing_half_written(
    chosen: str, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if chosen == "parquet":
        pytest.importorskip("pyarrow")
    run()
    capsys.readouterr()
    request.getfixturevalue("full_disk")
    line = error_line(capsys, lambda: run("--export=out", f"--format={chosen}"), code=1)
    assert line == "error: export: 'out' cannot be written (File too large); choose another folder"
    assert contents(tmp_path / "out") == {}


def test_an_interrupted_export_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("--export=out")
    before = contents(tmp_path / "out")

    def interrupt(self: Progress, amount: int = 1) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "advance", interrupt)
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        run("--export=out")
    assert contents(tmp_path / "out") == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format=csv", "--export=out"], "format: "),
        (["--format=parquet"], "export: --format, --dtype and --overwrite need a folder"),
        (["--dtype=float16"], "export: --format, --dtype and --overwrite need a folder"),
        (["--workers=2", "--ray=auto"], "ray: tasks run in workers of this machine or on a cluster"),
        (["--backbone.name=resnet19"], "backbone.name: 'resnet19' given"),
        (["--export=pictures/b/10.png"], "export: 'pictures/b/10.png' cannot be"),
        (["--device=mps"], "device: torch cannot use mps on this machine; choose another"),
    ],
)
def test_mistakes(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert error_line(capsys, lambda: run(*options)).startswith(f"error: {message}")


def test_mistakes_in_the_pictures(capsys: pytest.CaptureFixture[str]) -> None:
    line = error_line(capsys, lambda: main(["embed", "nowhere", "--backbone.weights=embedded"]))
    assert line.startswith("error: pictures: there is no folder nowhere")


def test_parquet_without_its_package(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    line = error_line(capsys, lambda: run("--export=out", "--format=parquet"))
    assert line == "error: format: parquet needs pyarrow; pip install 'headstart[datasets]'"


def test_a_feature_beyond_float16_is_no_infinity() -> None:
    rows = np.zeros((3, 4), np.float32)
    rows[1, 2] = -70_000
    photos = DrawnPets(train_size=4).train().subset(np.arange(3))
    exported = exported_features.ExportedFeatures(photos, "", ["0"] * 3, rows, 3, {}, "float16")
    with pytest.raises(UserError, match=f"{re.escape(photos.names[1])} has a feature of 70000; export float32"):
        list(exported.chunks(range(3)))


@pytest.mark.slow
def test_workers_write_the_same_and_the_command_itself_imports_no_torch(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom headstart.__main__ import main\n"
        "main(['embed', 'pictures', '--backbone.weights=embedded', '--workers=2', '--num_workers=0', '--export=out',"
        " '--cache_dir=cache'])\nprint('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "6 pictures: 6 computed, 0 reused" in done.stdout
    assert done.stdout.splitlines()[-1] == "False"
    np.testing.assert_array_equal(read(tmp_path / "out", "npy")[0], expected())
