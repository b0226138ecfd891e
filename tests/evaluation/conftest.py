"""A small arena: eighteen stimuli of two data sets and three small random networks."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headstart.datamodules.row_computation import RowComputer
from headstart.tests.material.arena import Arena, make_arena, set_environment


@pytest.fixture
def arena(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Arena:
    set_environment(monkeypatch, tmp_path)
    return make_arena(tmp_path)


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run something that must end with one line on the error stream and exit code 1; give the line."""

    def run(action: Callable[[], object]) -> str:
        # Commands before it may have shown their progress.
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            action()
        text = capsys.readouterr().err
        assert end.value.code == 1
        assert text.startswith("error: ")
        assert text.count("\n") == 1, text
        return text

    return run


@pytest.fixture
def no_forward_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail a test as soon as a network runs."""

    def refuse(self: RowComputer, *_: Any) -> None:
        raise AssertionError(self.pictures.names[0])

    monkeypatch.setattr(RowComputer, "compute", refuse)
