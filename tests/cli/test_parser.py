"""A user's mistake is one line on the error stream, without a traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from lightning.fabric.utilities.exceptions import MisconfigurationException

from cli.parser import one_line_errors

Fit = Callable[..., Path]


def error_line(capsys: pytest.CaptureFixture[str], run: Callable[[], object], code: int) -> str:
    """Give the one line that a command fails with."""
    with pytest.raises(SystemExit) as caught:
        run()
    assert caught.value.code == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    return line


@pytest.mark.parametrize(
    ("option", "words", "suggestion"),
    [
        ("--criterion.treshold=0.9", "treshold", "criterion.threshold"),
        ("--criterion.evaluate_evry=3", "evaluate_evry", "criterion.evaluate_every"),
        ("--results.overwirte=true", "overwirte", "results.overwrite"),
        ("--trainer.max_epocs=3", "max_epocs", "trainer.max_epochs"),
        ("--sed_everything=3", "sed_everything", "seed_everything"),
        ("--data.batchsize=3", "batchsize", "batch_size"),
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


def test_misspelt_key_in_a_file(fit: Fit, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("criterion:\n  treshold: 0.9\n")
    line = error_line(capsys, lambda: fit("--config=mine.yaml"), code=2)
    assert "treshold" in line
    assert line.endswith("(closest: criterion.threshold)")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--data.max_samples=25"], "data.max_samples: 25 asked for, but there are 24 training photos"),
        (["--data.max_samples=2"], "data.max_samples: 2 is too few to meet the criterion"),
        (["--data.photos.root=absent"], "there is no folder absent"),
        (["--data.backbone.name=mobilenet_v9"], "torchvision has no classifier 'mobilenet_v9'"),
        (["--data=datamodules.PhotoStream", "--data.orderings=2"], "data.orderings: 2 asked for"),
        (["--model.methods={baseline: modules.NearestClassMean}"], "the name 'baseline' is the baseline's own"),
    ],
)
def test_mistake_found_while_running(
    fit: Fit, capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    assert words in error_line(capsys, lambda: fit(*options), code=1)


def test_missing_dashboard(fit: Fit, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callbacks.dashboard.find_spec", lambda name: None)
    line = error_line(capsys, lambda: fit("--trainer.logger=callbacks.DashboardLogger"), code=1)
    assert line.startswith("error: trainer.logger: wandb is not installed; pip install wandb")


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


def test_errors_of_the_program_keep_their_traceback() -> None:
    with pytest.raises(ValueError, match="a bug"), one_line_errors():
        raise ValueError("a bug")  # noqa: EM101


def test_users_mistake_ends_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    def run() -> None:
        with one_line_errors():
            raise MisconfigurationException("data.x: wrong")  # noqa: EM101

    assert error_line(capsys, run, code=1) == "error: data.x: wrong"
