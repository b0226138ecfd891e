"""Checkpoints that another user wrote, or that are damaged, run no code and are not continued."""

import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from headstart.callbacks import ComparisonRun, checkpoints
from headstart.tests.callbacks.test_checkpoints import COUNTS, CRITERION, fed, stored
from headstart.tests.material.scripted_runs import Killed, ScriptedRun

Script = Callable[..., ScriptedRun]
__all__ = ["fed"]


class Payload:
    """Creates a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.mark),)


def cut_off(script: Script) -> Path:
    (file,) = stored(script(COUNTS, results=ComparisonRun(), callbacks=(Killed(7),), **CRITERION))
    return file


def require_restarted(script: Script, fed: list[int], capsys: pytest.CaptureFixture[str]) -> str:
    """Run again, and return what is printed; nothing may be continued, and every count must be right."""
    capsys.readouterr()
    fed.clear()
    run = script(COUNTS, results=ComparisonRun(), **CRITERION)
    assert sorted(fed) == sorted([*range(1, 21)] * 2)
    assert run.correct.tolist() == COUNTS.tolist()
    # Remarks are printed within the width of the terminal.
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("part", ["whole file", "content", "head"])
def test_a_replaced_checkpoint_runs_no_code(
    script: Script, fed: list[int], part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, mark = cut_off(script), tmp_path / "ran"
    whole, evil = file.read_bytes(), pickle.dumps(Payload(mark))
    if part == "whole file":
        torch.save({"made_by": checkpoints.MADE_BY, "methods": Payload(mark)}, file)
    elif part == "content":
        torch.save(Payload(mark), file)
        file.write_bytes(file.read_bytes() + whole[whole.rindex(b"PK\x05\x06") + 22 :])
    else:
        file.write_bytes(evil + len(evil).to_bytes(8) + whole[-88:])
    printed = require_restarted(script, fed, capsys)
    assert not mark.exists()
    assert f"The checkpoint {file} is not used (it" in printed


@pytest.mark.slow
def test_a_checkpoint_of_another_user_is_not_read(
    script: Script, fed: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut_off(script)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    assert "its authentication code is not that of this user" in require_restarted(script, fed, capsys)


def test_a_checkpoint_under_the_name_of_another_is_not_read(
    script: Script, fed: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    file = cut_off(script)
    file.rename(file.with_name(f"{file.stem[:-1]}{'1' if file.stem[-1] == '0' else '0'}.pt"))
    assert "its authentication code is not that of this user" in require_restarted(script, fed, capsys)


@pytest.mark.slow
def test_a_flipped_bit_anywhere_changes_nothing(
    script: Script, fed: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = cut_off(script)
    ledger = file.parent.parent
    shutil.copytree(ledger, tmp_path / "copy")
    whole = file.read_bytes()
    for position in np.random.default_rng(0).integers(0, len(whole), 8).tolist():
        shutil.rmtree(ledger)
        shutil.copytree(tmp_path / "copy", ledger)
        file.write_bytes(whole[:position] + bytes([whole[position] ^ 4]) + whole[position + 1 :])
        assert "is not used" in require_restarted(script, fed, capsys)
        shutil.rmtree(tmp_path / "run", ignore_errors=True)


def test_without_a_key_nothing_is_kept_and_the_run_goes_on(
    script: Script, fed: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = cut_off(script)
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    file.unlink()
    assert "A run that is cut off restarts, because checkpoints need a key" in require_restarted(script, fed, capsys)
    assert list(file.parent.iterdir()) == []
