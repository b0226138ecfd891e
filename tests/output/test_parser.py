"""A user's mistake is one line on the error stream, without a traceback."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from headstart import evaluate
from headstart.cli.command_line import load
from headstart.cli.commands import EVALUATIONS, Command
from headstart.output.errors import UserError
from headstart.output.parser import OneLineErrorParser, one_line_errors
from headstart.tests.material.mistakes import error_line

Fit = Callable[..., Path]


class Inner:
    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options


class Outer:
    def __init__(self, inner: Inner) -> None:
        self.inner = inner


@pytest.mark.parametrize(
    ("option", "words", "suggestion"),
    [
        ("--criterion.treshold=0.9", "treshold", "criterion.threshold"),
        ("--criterion.evaluate_evry=3", "evaluate_evry", "criterion.evaluate_every"),
        ("--results.overwirte=true", "overwirte", "results.overwrite"),
        ("--trainer.max_epocs=3", "max_epocs", "trainer.max_epochs"),
        ("--sed_everything=3", "sed_everything", "seed_everything"),
        ("--data.batchsize=3", "data.batchsize", "data.batch_size"),
        ("--data.init_args.batchsize=3", "data.batchsize", "data.batch_size"),
        ("--datta.batch_size=3", "datta.batch_size", "data.batch_size"),
        ("--data.photos.roto=x", "data.photos.roto", "data.photos.root"),
        ("--data.backbone.nme=x", "data.backbone.nme", "data.backbone.name"),
        (
            "--data.backbone.preprocessing.resizee=3",
            "data.backbone.preprocessing.resizee",
            "data.backbone.preprocessing.resize",
        ),
        ("--model.baseline.optimizer.lrr=1", "model.baseline.optimizer.lrr", "model.baseline.optimizer.lr"),
    ],
)
def test_misspelt_option_with_the_closest(
    fit: Fit, capsys: pytest.CaptureFixture[str], option: str, words: str, suggestion: str
) -> None:
    line = error_line(capsys, lambda: fit(option), code=2)
    assert words in line
    assert line.endswith(f"(closest: {suggestion})")


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--criterion.threshold=1.5", ["criterion.threshold", "1.5"]),
        ("--criterion.consecutive=0", ["criterion.consecutive"]),
        ("--data.batch_size=-1", ["batch_size"]),
        ("--data.orderings=many", ["orderings", "many"]),
        ("--data.on_bad_image=ignore", ["on_bad_image", "ignore"]),
        ("--data=NoStream", ["NoStream"]),
        ("--model.baseline=NoMethod", ["NoMethod"]),
        ("--data.nothing_like_it=1", ["nothing_like_it"]),
        ("--config=absent.yaml", ["absent.yaml"]),
    ],
)
def test_wrong_value(fit: Fit, capsys: pytest.CaptureFixture[str], option: str, words: list[str]) -> None:
    line = error_line(capsys, lambda: fit(option), code=2)
    assert all(word in line for word in words)


@pytest.mark.parametrize("text", ["b", "😀", "null and void"])
def test_values_of_a_class_within_a_class_arrive_as_they_are(text: str) -> None:
    parser = OneLineErrorParser()
    parser.add_subclass_arguments(Outer, "outer")
    options = json.dumps({"a": text, "b": None, "c": [None, True]}, ensure_ascii=False)
    classes = f"--outer={__name__}.Outer", f"--outer.inner={__name__}.Inner"
    parsed = parser.parse_args([*classes, f"--outer.inner.options={options}"])
    assert parsed.outer.init_args.inner.init_args.options == {"a": text, "b": None, "c": [None, True]}


def test_misspelt_key_in_a_file(fit: Fit, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("criterion:\n  treshold: 0.9\n")
    line = error_line(capsys, lambda: fit("--config=mine.yaml"), code=2)
    assert "treshold" in line
    assert line.endswith("(closest: criterion.threshold)")


def test_a_file_that_is_no_text(fit: Fit, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_bytes("# Zürich\n".encode("latin-1"))
    line = error_line(capsys, lambda: fit("--config=mine.yaml"), code=2)
    assert line.startswith("error: config: mine.yaml is not UTF-8: byte 3 is 0xfc")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--data.max_samples=25"], "data.max_samples: 25 requested, but there are 24 training photos"),
        (["--data.max_samples=2"], "data.max_samples: 2 is too few to meet the criterion"),
        (["--data.photos.root=absent"], "there is no folder absent"),
        (
            ["--data.backbone.name=mobilenet_v9"],
            "data.backbone.name: torchvision has no model 'mobilenet_v9'; it",
        ),
        (
            ["--model.methods={baseline: headstart.modules.NearestClassMean}"],
            "the name 'baseline' is the baseline's own",
        ),
    ],
)
def test_mistake_found_while_running(
    fit: Fit, capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    assert words in error_line(capsys, lambda: fit(*options), code=1)


def test_a_mistake_that_a_method_finds_is_reported_once(fit: Fit, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        fit("--model.methods.lora=LoRA")
    assert caught.value.code == 1
    output = capsys.readouterr()
    reason = "LoRA runs a backbone of its own; feed it photos, with data=PhotoStream"
    assert output.err.splitlines()[-1] == f"error: model.methods.lora: {reason}"
    assert (output.out + output.err).count(reason) == 1
    assert "INCOMPLETE: a mistake ended it, before every method was measured. Nothing is written." in output.out


def test_missing_dashboard(fit: Fit, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headstart.output.dashboard.find_spec", lambda name: None)
    line = error_line(capsys, lambda: fit("--trainer.logger=headstart.callbacks.DashboardLogger"), code=1)
    assert line.startswith("error: trainer.logger: wandb is not installed; pip install wandb")


@pytest.mark.slow
def test_folder_of_another_configuration(fit: Fit, capsys: pytest.CaptureFixture[str]) -> None:
    fit()
    capsys.readouterr()
    line = error_line(capsys, lambda: fit("--data.batch_size=2"), code=1)
    assert "'run' holds results of another configuration" in line
    assert "--results.overwrite=true" in line
    fit("--data.batch_size=2", "--results.overwrite=true")


@pytest.mark.parametrize(
    ("batch_size", "max_samples", "enough"), [(8, 17, True), (8, 16, False), (1, 3, True), (1, 2, False)]
)
def test_limit_that_leaves_just_enough_evaluations(
    fit: Fit, capsys: pytest.CaptureFixture[str], batch_size: int, max_samples: int, enough: bool
) -> None:
    options = [f"--data.batch_size={batch_size}", f"--data.max_samples={max_samples}"]
    if enough:
        fit(*options)
    else:
        assert "too few to meet the criterion" in error_line(capsys, lambda: fit(*options), code=1)


@pytest.mark.parametrize("error", [ValueError("a bug"), KeyError("a bug"), MemoryError("a bug")])
def test_errors_of_the_program_keep_their_traceback(error: Exception) -> None:
    with pytest.raises(type(error), match="a bug"), one_line_errors():
        raise error


def test_error_after_a_mistake_that_was_dealt_with() -> None:
    error = ValueError("a bug")
    error.__context__ = UserError("data.x: wrong")
    with pytest.raises(ValueError, match="a bug"), one_line_errors():
        raise error


@pytest.mark.parametrize("wrappers", [0, 1, 2])
def test_users_mistake_ends_the_program(capsys: pytest.CaptureFixture[str], wrappers: int) -> None:
    from lightning.fabric.utilities.exceptions import MisconfigurationException

    def fail(kind: type[Exception], depth: int) -> None:
        try:
            if depth:
                fail(kind, depth - 1)
        except Exception as error:
            raise ValueError("while building") from error
        raise kind("data.x: wrong")

    def run(kind: type[Exception]) -> None:
        with one_line_errors():
            fail(kind, wrappers)

    for kind in (UserError, MisconfigurationException):
        assert error_line(capsys, partial(run, kind), code=1) == "error: data.x: wrong"


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


def test_command_in_another_thread() -> None:
    def run() -> str:
        with one_line_errors():
            return "done"

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(run).result() == "done"


@pytest.fixture
def two_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Return an `evaluate.py` with two commands."""
    commands = {"light": "tests.material.light_command", "he-avy": "tests.material.heavy_command"}
    monkeypatch.delitem(sys.modules, "headstart.tests.material.heavy_command", raising=False)
    monkeypatch.setattr(evaluate, "EVALUATIONS", {name: Command(name, home) for name, home in commands.items()})


@pytest.mark.usefixtures("two_commands")
def test_only_the_command_that_is_named_is_imported(capsys: pytest.CaptureFixture[str]) -> None:
    evaluate.main(["light", "--size=3", "--name=y"])
    assert capsys.readouterr().out == "y: 3\n"
    mistakes = {
        "--naem=y": "(closest: name)",
        "--na=y": "na: there is no such option",
        "--size=many": "size",
        "4": "'4' is no option",
    }
    for option, words in mistakes.items():
        command = partial(evaluate.main, ["light", "--size=3", option])
        assert words in error_line(capsys, command, code=2)
    assert "headstart.tests.material.heavy_command" not in sys.modules


@pytest.mark.usefixtures("two_commands")
def test_options_with_dashes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for command in (["light", "--size=3", "--long-name=a-b"], ["light", "--size=3", "--long_name", "a-b"]):
        evaluate.main(command)
        assert capsys.readouterr().out == "x: 3a-b\n"


@pytest.mark.usefixtures("two_commands")
def test_options_of_a_command_in_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "options.yaml").write_text("size: 4\n")
    monkeypatch.chdir(tmp_path)
    evaluate.main(["light", "--config=options.yaml"])
    assert capsys.readouterr().out == "x: 4\n"


@pytest.mark.usefixtures("two_commands")
def test_no_such_command(capsys: pytest.CaptureFixture[str]) -> None:
    line = error_line(capsys, lambda: evaluate.main(["lihgt", "3"]), code=2)
    assert line == "error: 'lihgt' is not a command (closest: light); evaluate.py --help lists them"


@pytest.mark.usefixtures("two_commands")
@pytest.mark.parametrize("option", [["--logger=false"], ["--logger", "False"], []])
def test_a_command_that_mirrors_nothing_takes_no_logger(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    evaluate.main(["light", "--size=3", *option])
    assert capsys.readouterr().out == "x: 3\n"
    line = error_line(capsys, lambda: evaluate.main(["light", "--size=3", "--logger=true"]), code=2)
    assert line.startswith("error: logger: there is no such option")


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    evaluate.main(["--help"])
    lines = capsys.readouterr().out.splitlines()
    for name, command in EVALUATIONS.items():
        assert f"  {name:18}  {command.summary}" in lines
        assert (load(command.function).__doc__ or "").splitlines()[0].endswith(".")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["sample-efficiency", "cka", "cka-search", "stability", "audit"])
def test_commands_that_need_no_network_start_at_once(command: str) -> None:
    # The parser imports what it needs to resolve the types of options, too.
    heavy = ["lightning", "open_clip", "timm", "torch", "torchmetrics", "torchvision", "wandb"]
    script = (
        "import atexit, sys, evaluate, headstart.store.cache, headstart.store.feature_table\n"
        f"atexit.register(lambda: print(*({{*{heavy}}} & {{*sys.modules}})))\n"
        f"evaluate.main([{command!r}, '--help'])"
    )
    root = Path(evaluate.__file__).parent
    process = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout.splitlines()[-1] == ""
