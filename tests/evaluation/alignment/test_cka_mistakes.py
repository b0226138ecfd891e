"""Mistakes that end a scoring or a search: one line, no file, and where possible before a network runs."""

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headstart.tests.material.arena import ENTRIES, Arena, make_arena, make_entry, set_environment
from headstart.tests.material.mistakes import error_line

MODELS = [entry["model_name"] for entry in ENTRIES]
RULES = "name: ours\ntitle: Ours\nteams: {blue: {count: {exactly: 2}}}\n"
Prepare = Callable[[Arena], object]
Mistake = tuple[str, Prepare, list[str], tuple[str, ...]]


def leave(arena: Arena) -> None:
    """Change nothing."""


def register(entry: dict[str, Any]) -> Prepare:
    return lambda arena: arena.write("registry.json", [*ENTRIES, entry])


def spoil(write: Callable[[Path], object]) -> Prepare:
    return lambda arena: write(arena.photo(4))


def write_png_header(path: Path, side: int) -> None:
    """Write a PNG whose header promises a picture of that side; its pixels are missing."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    size = side.to_bytes(4, "big")
    header = chunk(b"IHDR", size + size + bytes([8, 2, 0, 0, 0]))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b""))


def give_stimuli_one_picture(arena: Arena) -> None:
    for index in (4, 5):
        arena.photo(index).write_bytes(arena.photo(3).read_bytes())


def write_network_that_gives_nan(arena: Arena) -> None:
    import torch
    import torchvision

    state = torchvision.models.squeezenet1_1().state_dict()
    state["features.0.bias"][0] = torch.nan
    torch.save(state, arena.folder / "nan.pth")
    arena.write("registry.json", [{**ENTRIES[0], "weights": "nan.pth"}, *ENTRIES[1:]])


# A command, what is changed before, options (`RED` and `BLUE` are submissions), and words of the message.
RED, BLUE, PAIR = "RED", "BLUE", f"--models=[{MODELS[0]},{MODELS[1]}]"
CUSTOM = make_entry("mine", "fc", "flatten", 4, source="custom", model_parameters={"name": "os.system"})
BEFORE_A_NETWORK_RUNS: list[Mistake] = [
    ("cka", leave, [], ("submission",)),
    ("cka", leave, ["--models=[squeezenet1_1]"], ("models",)),
    ("cka", leave, ["--models=[squeezenet1_1,squeezenet1_1]"], ("models",)),
    ("cka", leave, ["--models=[squeezenet1_1,other]"], ("other",)),
    ("cka", leave, [PAIR, "--layers=[fc,conv5]"], ("models",)),
    ("cka", leave, ["--models=[shufflenet_v2_x0_5]", "--layers=[fc]"], ("layers",)),
    ("cka", leave, [PAIR, "--team=red"], ("team",)),
    ("cka", leave, [PAIR, "--log_dir=logs"], ("log_dir",)),
    ("cka", leave, [PAIR, "--challenge=contract"], ("challenge: contract",)),
    ("cka", leave, ["--models=[squeezenet1_1]", "--submission=some.json"], ("both",)),
    ("cka", leave, [BLUE, "--challenge=ours.yaml"], ("/models: must have exactly 2 models in this challenge, not 3",)),
    ("cka", leave, [RED, "--output=registry.json/below"], ("output",)),
    ("cka", leave, [RED, "--log_dir=registry.json/below"], ("log_dir",)),
    ("cka", leave, [RED, "--logger=true", "--dashboard.mode=online"], ("wandb login",)),
    ("cka", lambda arena: arena.photo(4).unlink(), [RED], ("nature/val/0/4.png",)),
    ("cka", register(make_entry("vgg11", "features", "pool", 512, weights="gone.pth")), [RED], ("vgg11", "gone.pth")),
    ("cka", register(CUSTOM), [RED], ("mine", "allow_modules")),
    ("cka", leave, [RED, "--measure=rbf_cka"], ("measure: rbf_cka is given, but the contract scores by ",)),
    ("cka-search", leave, ["--team=blue", "--size=4"], ("size", "at least 2 and at most 3")),
    ("cka-search", leave, ["--team=red", "--size=19"], ("size", "at least 2 and at most 18")),
]
WHILE_NETWORKS_RUN: list[Mistake] = [
    *(
        ("cka", spoil(write), [RED], ("nature/val/0/4.png",))
        for write in (
            lambda path: path.write_bytes(path.read_bytes()[:200]),
            lambda path: write_png_header(path, 50_000),
            lambda path: write_png_header(path, 11_000),
            lambda path: path.write_bytes(b""),
            lambda path: path.write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n"),
        )
    ),
    ("cka", register(make_entry("no_such_network", "fc", "flatten", 10)), [RED], ("no_such_network",)),
    ("cka", register(make_entry("squeezenet1_0", "fc", "pool", 512)), [RED], ("squeezenet1_0", "fc")),
    ("cka", register(make_entry("squeezenet1_0", "features", "pool", 511)), [RED], ("squeezenet1_0", "511")),
    ("cka", write_network_that_gives_nan, [BLUE], ("squeezenet1_1", "not finite")),
    ("cka", give_stimuli_one_picture, [RED], (MODELS[0],)),
]


def wrong_messages(
    mistakes: list[Mistake], folder: Path, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch
) -> list[tuple[list[str], str]]:
    """Return what was given and the message where that is not the expected one."""
    wrong = []
    for index, (command, prepare, options, words) in enumerate(mistakes):
        arena = make_arena(folder / str(index))
        patch.chdir(arena.folder)
        set_environment(patch, arena.folder)
        arena.write("ours.yaml", RULES)
        prepare(arena)
        submissions = {RED: f"--submission={arena.red([3, 4, 5])}", BLUE: f"--submission={arena.blue(*MODELS)}"}
        arguments = [submissions.get(option, option) for option in options]
        if not any(option.startswith("--logger") for option in arguments):
            arguments.append("--logger=false")
        line = error_line(capsys, lambda: arena.evaluate(command, *arguments), 1)  # noqa: B023 - called at once
        if any(word not in line for word in words) or (arena.folder / "out").exists():
            wrong.append((options, line))
    return wrong


@pytest.mark.usefixtures("no_forward_pass")
def test_mistakes_that_are_found_before_a_network_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert wrong_messages(BEFORE_A_NETWORK_RUNS, tmp_path, capsys, monkeypatch) == []


def test_stimuli_and_models_that_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert wrong_messages(WHILE_NETWORKS_RUN, tmp_path, capsys, monkeypatch) == []


def test_the_same_command_logs_a_score_whose_log_failed(arena: Arena, refused: Callable[..., str]) -> None:
    log = arena.folder / "log"
    (log / "scores.jsonl").mkdir(parents=True)
    submission, options = arena.red([0, 1, 2]), (f"--log_dir={log}", "--overwrite=false")
    assert "log_dir" in refused(lambda: arena.score(submission, *options))
    (log / "scores.jsonl").rmdir()
    score = arena.score(submission, *options)
    assert json.loads((log / "scores.jsonl").read_text())["score"] == score["score"]
    # Nothing is logged where the files fail.
    (arena.folder / "there" / "score.json").mkdir(parents=True)
    text = (log / "scores.jsonl").read_text()
    assert "output" in refused(lambda: arena.score(submission, f"--log_dir={log}", output="there"))
    assert (log / "scores.jsonl").read_text() == text
