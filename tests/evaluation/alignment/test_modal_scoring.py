"""Scoring on Modal up to the remote call: routing, what is sent, what comes back, and refusals."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from packaging.requirements import Requirement

import headstart
from headstart import evaluate
from headstart.evaluation.alignment import modal_scoring
from headstart.tests.material.arena import ENTRIES, Arena


class ClientError(Exception):
    """Stands for modal.exception.Error."""


class AuthError(ClientError):
    """Stands for modal.exception.AuthError."""


class Client:
    """Stands for the package `modal`; the remote call runs here, with the mounted files where they are mounted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.modal, self.image = MagicMock(), MagicMock()
        for step in ("pip_install", "env", "add_local_file", "add_local_dir", "add_local_python_source"):
            getattr(self.image, step).return_value = self.image
        self.modal.exception = SimpleNamespace(Error=ClientError, AuthError=AuthError)
        self.modal.Image.debian_slim.return_value = self.image
        self.modal.Volume.from_name.side_effect = lambda name, create_if_missing: name
        self.app = self.modal.App.return_value
        self.answer: Callable[[dict[str, Any]], dict[str, Any]] = lambda answer: answer

        def run(function: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
            self.sent = arguments
            for remote, local in self.files().items():
                mounted = folder / remote.removeprefix("/")
                mounted.parent.mkdir(parents=True, exist_ok=True)
                mounted.write_bytes(local.read_bytes())
            for name in ("registry", "catalog"):
                remote = {"registry": "contract/model_registry.json", "catalog": "contract/stimuli_catalog.jsonl"}[name]
                monkeypatch.setattr(modal_scoring, name.upper(), str(folder / remote))
            submission, team, options = arguments
            return self.answer(function(submission, team, {**options, "cache_dir": str(folder / "cache")}))

        self.app.function.return_value = lambda function: SimpleNamespace(remote=partial(run, function))

    def files(self) -> dict[str, Path]:
        return {remote: Path(local) for local, remote in (call.args for call in self.image.add_local_file.mock_calls)}


@pytest.fixture
def client(arena: Arena, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Client:
    client = Client(monkeypatch, tmp_path / "machine")
    monkeypatch.setitem(sys.modules, "modal", client.modal)
    monkeypatch.setenv("HACKATHON_MODAL_ENABLE", "true")
    return client


def test_score_equals_the_local_one(arena: Arena, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    remote = arena.score(arena.red([0, 1, 2, 3]), output="there")
    monkeypatch.setenv("HACKATHON_MODAL_ENABLE", "false")
    local = arena.score(arena.red([0, 1, 2, 3]), output="here")
    assert {**remote, "timings": 0} == {**local, "timings": 0}
    assert (arena.folder / "there" / "heatmap.png").is_file()
    assert (arena.folder / "there" / "scores.jsonl").is_file()


def test_files_and_arguments_are_sent(arena: Arena, client: Client) -> None:
    import torch
    import torchvision

    torch.save(torchvision.models.squeezenet1_1().state_dict(), arena.folder / "local.pth")
    arena.write("registry.json", [{**ENTRIES[0], "weights": "local.pth"}, *ENTRIES[1:]])
    submission = arena.blue("squeezenet1_1", "shufflenet_v2_x0_5")
    arena.score(submission, "--extraction.seed=3")
    content, team, options = client.sent
    assert (content, team) == (submission.read_bytes(), "blue")
    assert (options["seed"], options["cache_dir"]) == (3, "/cache")
    package = f"{modal_scoring.HOME}/headstart"
    files = client.files()
    assert files.pop(f"{package}/__init__.py") == Path(headstart.__file__)
    assert files.pop(f"{package}/__init__.pyi").is_file()
    assert files.pop("/contract/local.pth") == arena.folder / "local.pth"
    assert set(files) == {"/contract/model_registry.json", "/contract/stimuli_catalog.jsonl"}
    folders = {remote: Path(local) for local, remote in (call.args for call in client.image.add_local_dir.mock_calls)}
    assert {remote for remote, local in folders.items() if not local.is_dir()} == set()
    requirements = {Requirement(text).name: Requirement(text) for text in client.image.pip_install.call_args.args}
    assert {"torch", "lightning", "open_clip_torch"} <= set(requirements)
    assert requirements["jsonargparse"].extras == {"signatures"}
    assert "fastapi" not in requirements


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
        client.app.run.side_effect = refusal
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
