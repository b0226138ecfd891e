"""Scoring on Modal up to the remote call: routing, what is sent, what comes back, and refusals."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from packaging.requirements import Requirement

import headstart
from headstart import evaluate
from headstart.evaluation.alignment import modal_scoring
from headstart.tests.material.arena import ENTRIES, Arena


class Image:
    """Records how a machine is described."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Callable[..., Image]:
        def step(*arguments: Any, **_: Any) -> Image:
            self.steps.append((name, arguments))
            return self

        return step

    def files(self) -> dict[str, Path]:
        return {there: Path(here) for name, (here, *rest) in self.steps if name == "add_local_file" for there in rest}


class ClientError(Exception):
    """Stands for modal.exception.Error."""


class AuthError(ClientError):
    """Stands for modal.exception.AuthError."""


class Client:
    """Stands for the package `modal`; the remote call runs here, with the mounted files where they are mounted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.monkeypatch = monkeypatch
        self.folder = folder
        self.image = Image()
        self.exception = SimpleNamespace(Error=ClientError, AuthError=AuthError)
        self.Image = SimpleNamespace(debian_slim=lambda **_: self.image)
        self.Volume = SimpleNamespace(from_name=lambda name, create_if_missing: name)
        self.arguments: dict[str, Any] = {}
        self.sent: tuple[Any, ...] = ()
        self.refusal: ClientError | None = None
        self.answer: Callable[[dict[str, Any]], dict[str, Any]] = lambda answer: answer

    def App(self, name: str) -> Client:  # noqa: N802 - modal's name
        self.name = name
        return self

    def function(self, **arguments: Any) -> Callable[..., Client]:
        self.arguments = arguments

        def decorate(function: Callable[..., dict[str, Any]]) -> Client:
            self.remotely = function
            return self

        return decorate

    def run(self) -> Client:
        if self.refusal is not None:
            raise self.refusal
        return self

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def remote(self, *arguments: Any) -> dict[str, Any]:
        self.sent = arguments
        for there, here in self.image.files().items():
            mounted = self.folder / there.removeprefix("/")
            mounted.parent.mkdir(parents=True, exist_ok=True)
            mounted.write_bytes(here.read_bytes())
        for name in ("REGISTRY", "CATALOG"):
            there = getattr(modal_scoring, name)
            self.monkeypatch.setattr(modal_scoring, name, str(self.folder / there.removeprefix("/")))
        submission, team, options, epsilon = arguments
        options = {**options, "cache_dir": str(self.folder / "cache")}
        return self.answer(self.remotely(submission, team, options, epsilon))


@pytest.fixture
def client(arena: Arena, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Client:
    client = Client(monkeypatch, tmp_path / "machine")
    monkeypatch.setitem(sys.modules, "modal", client)
    monkeypatch.setenv("HACKATHON_MODAL_ENABLE", "true")
    return client


def test_score_equals_the_local_one(arena: Arena, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = arena.write("ours.yaml", "{name: ours, title: Ours, teams: {red: {}}, score: {epsilon: 0.5}}")
    there = arena.score(arena.red([0, 1, 2, 3]), f"--challenge={rules}", output="there")
    monkeypatch.setenv("HACKATHON_MODAL_ENABLE", "false")
    here = arena.score(arena.red([0, 1, 2, 3]), f"--challenge={rules}", output="here")
    assert here["score_with_epsilon"] > here["score"]
    assert {**there, "timings": 0} == {**here, "timings": 0}
    assert (arena.folder / "there" / "heatmap.png").is_file()
    assert (arena.folder / "there" / "scores.jsonl").is_file()


def test_files_and_arguments_are_sent(arena: Arena, client: Client) -> None:
    import torch
    import torchvision

    torch.save(torchvision.models.squeezenet1_1().state_dict(), arena.folder / "local.pth")
    arena.write("registry.json", [{**ENTRIES[0], "weights": "local.pth"}, *ENTRIES[1:]])
    submission = arena.blue("squeezenet1_1", "shufflenet_v2_x0_5")
    arena.score(submission, "--extraction.seed=3")
    content, team, options, epsilon = client.sent
    assert content == submission.read_bytes()
    assert (team, epsilon) == ("blue", None)
    package = f"{modal_scoring.HOME}/headstart"
    assert (options["seed"], options["cache_dir"]) == (3, "/cache")
    assert client.image.files() == {
        f"{package}/__init__.py": Path(headstart.__file__),
        "/contract/model_registry.json": arena.registry,
        "/contract/stimuli_catalog.jsonl": arena.catalog,
        "/contract/local.pth": arena.folder / "local.pth",
    }
    assert client.arguments["volumes"] == {"/cache": "headstart-embeddings", "/datasets": "headstart-datasets"}
    steps = dict(client.image.steps)
    copied = [arguments for name, arguments in client.image.steps if name == "add_local_dir"]
    folders = {there: Path(here) for here, there in copied}
    assert {there for there, here in folders.items() if not here.is_dir()} == set()
    assert {f"{package}/{name}" for name in ("evaluation", "metrics", "modules", "store")} <= set(folders)
    requirements = {Requirement(each).name: Requirement(each) for each in steps["pip_install"]}
    assert {"torch", "lightning", "open_clip_torch"} <= set(requirements)
    assert requirements["jsonargparse"].extras == {"signatures"}
    assert "fastapi" not in requirements
    assert steps["env"][0]["HACKATHON_DATASET_ROOT"] == "/datasets"


def test_refusals(arena: Arena, client: Client, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    def alter(answer: dict[str, Any]) -> dict[str, Any]:
        answer["document"]["digests"]["registry"] = "0" * 64
        return answer

    score = partial(arena.score, arena.red([0, 1]))
    client.answer = alter
    assert "registry" in refused(score), "an answer about other documents"
    client.answer = lambda answer: answer
    arena.photo(1).write_text("no picture")
    text = refused(score)
    assert "on Modal" in text
    assert "nature/val/1/1.png" in text
    for refusal, hinted in ((AuthError("Token missing.\nRun modal token new"), True), (ClientError("No way."), False)):
        client.refusal = refusal
        text = refused(score)
        assert str(refusal).splitlines()[0] in text
        assert ("modal setup" in text) == hinted
    for missing in ("registry", "catalog"):
        for name, variable in (("registry", "MODEL_REGISTRY"), ("catalog", "STIMULI_CATALOG")):
            monkeypatch.setenv(f"HACKATHON_{variable}", "" if name == missing else str(getattr(arena, name)))
        text = refused(lambda: evaluate.main(["cka", f"--submission={arena.red([0, 1])}"]))
        assert ("MODEL_REGISTRY" in text) == (missing == "registry")
        assert ("STIMULI_CATALOG" in text) == (missing == "catalog")
    monkeypatch.setitem(sys.modules, "modal", None)
    assert "pip install 'headstart[modal]'" in refused(score)
    monkeypatch.setenv("HACKATHON_MODAL_ENABLE", "maybe")
    assert "'maybe'" in refused(score)
    assert not (arena.folder / "out").exists()
