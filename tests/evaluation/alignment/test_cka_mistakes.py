"""Mistakes that end a scoring: stimuli that are no pictures, models that fail, options and folders that do not fit."""

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headstart.evaluation.alignment.score_log import read_scores
from headstart.tests.material.arena import ENTRIES, Arena, make_entry

MODELS = [entry["model_name"] for entry in ENTRIES]


def put_png_header(path: Path, side: int) -> None:
    """Write a PNG whose header promises a picture of that side; its pixels are missing."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    size = side.to_bytes(4, "big")
    header = chunk(b"IHDR", size + size + bytes([8, 2, 0, 0, 0]))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b""))


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:200])


SPOILED: dict[str, Callable[[Path], object]] = {
    "truncated": truncate,
    "bomb": lambda path: put_png_header(path, 50_000),
    "large": lambda path: put_png_header(path, 11_000),
    "text": lambda path: path.write_text("no picture"),
    "empty": lambda path: path.write_bytes(b""),
    "postscript": lambda path: path.write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n"),
}


@pytest.mark.parametrize("kind", SPOILED)
def test_stimuli_that_are_no_pictures(arena: Arena, refused: Callable[..., str], kind: str) -> None:
    SPOILED[kind](arena.photo(4))
    text = refused(lambda: arena.score(arena.red([3, 4, 5])))
    assert "nature/val/0/4.png" in text
    assert not (arena.folder / "out").exists()


FAILING: dict[str, tuple[dict[str, Any], str]] = {
    "unknown architecture": (make_entry("no_such_network", "fc", "flatten", 10), "no_such_network"),
    "unknown layer": (make_entry("squeezenet1_0", "fc", "pool", 512), "fc"),
    "wrong width": (make_entry("squeezenet1_0", "features", "pool", 511), "511"),
    "missing file": (make_entry("squeezenet1_0", "features", "pool", 512, weights="gone.safetensors"), "gone"),
    "unknown parameter": (make_entry("squeezenet1_0", "features", "pool", 512, model_parameters={"depth": 3}), "depth"),
    "unknown weights": (make_entry("squeezenet1_0", "features", "pool", 512, weights="IMAGENET9K"), "IMAGENET9K"),
    "custom": (
        make_entry("mine", "fc", "flatten", 4, source="custom", model_parameters={"name": "os.system"}),
        "allow_modules",
    ),
}


@pytest.mark.parametrize("kind", FAILING)
def test_model_that_fails_fails_the_scoring(arena: Arena, refused: Callable[..., str], kind: str) -> None:
    entry, hint = FAILING[kind]
    arena.write("registry.json", [*ENTRIES, entry])
    text = refused(lambda: arena.score(arena.red([0, 1, 2])))
    assert entry["model_name"] in text
    assert hint in text
    assert not (arena.folder / "out").exists()


def test_model_that_gives_nan_is_named(arena: Arena, refused: Callable[..., str], tmp_path: Path) -> None:
    import torch
    import torchvision

    state = torchvision.models.squeezenet1_1().state_dict()
    state["features.0.bias"][0] = torch.nan
    torch.save(state, tmp_path / "nan.pth")
    arena.write("registry.json", [{**ENTRIES[0], "weights": "nan.pth"}, *ENTRIES[1:]])
    text = refused(lambda: arena.score(arena.blue(*MODELS[:2])))
    assert "squeezenet1_1" in text
    assert "not finite" in text


def test_stimuli_with_equal_pictures_leave_cka_undefined(arena: Arena, refused: Callable[..., str]) -> None:
    arena.photo(1).write_bytes(arena.photo(0).read_bytes())
    assert MODELS[0] in refused(lambda: arena.score(arena.red([0, 1])))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ([], "submission"),
        (["--models=[squeezenet1_1]"], "models"),
        (["--models=[squeezenet1_1,squeezenet1_1]"], "models"),
        (["--models=[squeezenet1_1,other]"], "other"),
        (["--models=[squeezenet1_1,shufflenet_v2_x0_5]", "--layers=[fc,conv5]"], "models"),
        (["--models=[shufflenet_v2_x0_5]", "--layers=[fc]"], "layers"),
        (["--models=[squeezenet1_1,shufflenet_v2_x0_5]", "--team=red"], "team"),
        (["--models=[squeezenet1_1,shufflenet_v2_x0_5]", "--log_dir=logs"], "log_dir"),
        (["--models=[squeezenet1_1]", "--submission=some.json"], "both"),
    ],
)
def test_options_that_do_not_fit(arena: Arena, refused: Callable[..., str], options: list[str], named: str) -> None:
    assert named in refused(lambda: arena.evaluate("cka", "--logger=false", *options))


def test_submission_of_the_other_team(arena: Arena, refused: Callable[..., str]) -> None:
    refused(lambda: arena.score(arena.blue(*MODELS), "--team=red"))
    assert not (arena.folder / "out").exists()


def test_the_same_command_logs_a_score_whose_log_failed(arena: Arena, refused: Callable[..., str]) -> None:
    log = arena.folder / "log"
    (log / "scores.jsonl").mkdir(parents=True)
    submission, options = arena.red([0, 1, 2]), (f"--log_dir={log}", "--overwrite=false")
    assert "log_dir" in refused(lambda: arena.score(submission, *options))
    (log / "scores.jsonl").rmdir()
    score = arena.score(submission, *options)
    assert [each["score"] for each in read_scores(log)] == [score["score"]]


def test_nothing_is_logged_where_the_files_fail(arena: Arena, refused: Callable[..., str]) -> None:
    (arena.folder / "out" / "score.json").mkdir(parents=True)
    assert "output" in refused(lambda: arena.score(arena.red([0, 1, 2]), f"--log_dir={arena.folder / 'log'}"))
    assert not (arena.folder / "log" / "scores.jsonl").exists()


@pytest.mark.usefixtures("no_forward_pass")
@pytest.mark.parametrize("option", ["--output", "--log_dir"])
def test_folders_are_checked_before_anything_runs(arena: Arena, refused: Callable[..., str], option: str) -> None:
    (arena.folder / "file").touch()
    text = refused(lambda: arena.score(arena.red([0, 1, 2]), f"{option}={arena.folder / 'file' / 'below'}"))
    assert option.removeprefix("--") in text


@pytest.mark.usefixtures("no_forward_pass")
def test_missing_weights_are_reported_before_a_network_runs(arena: Arena, refused: Callable[..., str]) -> None:
    arena.write("registry.json", [*ENTRIES, make_entry("vgg11", "features", "pool", 512, weights="gone.pth")])
    assert "gone.pth" in refused(lambda: arena.score(arena.red([0, 1, 2])))


@pytest.mark.usefixtures("no_forward_pass")
def test_missing_key_is_reported_before_a_network_runs(arena: Arena, refused: Callable[..., str]) -> None:
    options = ("--logger=true", "--dashboard.mode=online")
    assert "wandb login" in refused(lambda: arena.score(arena.red([0, 1, 2]), *options))
    assert not (arena.folder / "out").exists()


def test_mirror_that_fails_leaves_the_score(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import wandb

    def fail(**options: Any) -> None:
        raise wandb.Error("the server is away")

    monkeypatch.setattr(wandb, "init", fail)
    arena.score(arena.red([0, 1, 2]), "--logger=true", "--dashboard.mode=offline")
    assert "refuses (the server is away)" in capsys.readouterr().err
    assert len((arena.folder / "out" / "scores.jsonl").read_text().splitlines()) == 1
