"""A user's mistake is one line on the error stream, without a traceback."""

import json
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from headstart import evaluate
from headstart.cli.commands import Command
from headstart.output.errors import UserError
from headstart.output.parser import OneLineErrorParser, one_line_errors
from headstart.tests.material.mistakes import error_line


class Inner:
    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options


class Outer:
    def __init__(self, inner: Inner) -> None:
        self.inner = inner


def test_values_of_a_class_within_a_class_arrive_as_they_are() -> None:
    classes = f"--outer={__name__}.Outer", f"--outer.inner={__name__}.Inner"
    for text in ("b", "😀", "null and void"):
        parser = OneLineErrorParser()
        parser.add_subclass_arguments(Outer, "outer")
        options = json.dumps({"a": text, "b": None, "c": [None, True]}, ensure_ascii=False)
        parsed = parser.parse_args([*classes, f"--outer.inner.options={options}"])
        assert parsed.outer.init_args.inner.init_args.options == {"a": text, "b": None, "c": [None, True]}


def test_errors_of_the_program_keep_their_traceback() -> None:
    after_a_mistake = ValueError("a bug")
    after_a_mistake.__context__ = UserError("data.x: wrong")
    # Only a reader of what is printed goes without a word.
    for error in (MemoryError("a bug"), BrokenPipeError("a bug of a worker"), after_a_mistake):
        with pytest.raises(type(error), match="a bug"), one_line_errors():
            raise error


def test_users_mistake_ends_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    from lightning.fabric.utilities.exceptions import MisconfigurationException

    def fail(kind: type[Exception], depth: int) -> None:
        try:
            if depth:
                fail(kind, depth - 1)
        except Exception as error:
            raise ValueError("while building") from error
        raise kind("data.x: wrong")

    def run(kind: type[Exception], wrappers: int) -> None:
        with one_line_errors():
            fail(kind, wrappers)

    for kind in (UserError, MisconfigurationException):
        for wrappers in (0, 2):
            assert error_line(capsys, partial(run, kind, wrappers), code=1) == "error: data.x: wrong"


@pytest.mark.parametrize(
    ("number", "code", "line"), [(signal.SIGINT, 130, "error: interrupted"), (signal.SIGTERM, 143, "error: terminated")]
)
def test_interrupt_and_termination_are_one_line(
    capsys: pytest.CaptureFixture[str], number: signal.Signals, code: int, line: str
) -> None:
    before = signal.getsignal(number)

    def run() -> None:
        with one_line_errors():
            os.kill(os.getpid(), number)
            time.sleep(10)

    assert error_line(capsys, run, code=code) == line
    assert signal.getsignal(number) is before


@pytest.fixture
def two_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Return an `evaluate.py` with two commands."""
    commands = {"light": "tests.material.light_command", "he-avy": "tests.material.heavy_command"}
    monkeypatch.delitem(sys.modules, "headstart.tests.material.heavy_command", raising=False)
    monkeypatch.setattr(evaluate, "EVALUATIONS", {name: Command(home) for name, home in commands.items()})


@pytest.mark.usefixtures("two_commands")
def test_only_the_command_that_is_named_is_imported(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "options.yaml").write_text("size: 4\n")
    monkeypatch.chdir(tmp_path)
    for options, printed in {
        "--size=3 --name=y": "y: 3",
        "--size=3 --long_name a-b": "x: 3a-b",
        "--config=options.yaml": "x: 4",
        # What mirrors nothing needs no logger.
        "--size=3 --logger=false": "x: 3",
        "--size=3 --logger False": "x: 3",
    }.items():
        evaluate.main(["light", *options.split()])
        assert capsys.readouterr().out == f"{printed}\n"
    # No option is abbreviated.
    for option in ("--na=y", "--logger=true"):
        command = partial(evaluate.main, ["light", "--size=3", option])
        assert "there is no such option" in error_line(capsys, command, code=2)
    line = error_line(capsys, lambda: evaluate.main(["lihgt", "3"]), code=2)
    assert line == "error: 'lihgt' is not a command (closest: light); evaluate.py --help lists them"
    assert "headstart.tests.material.heavy_command" not in sys.modules
