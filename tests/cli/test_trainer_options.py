"""Whatever is given for an option of Lightning's trainer, a mistake is one line that names the option."""

import inspect
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from lightning.pytorch import Trainer

from headstart.tests.material.mistakes import error_line

Fit = Callable[..., Path]
# A registry may have any name, a folder is tried below, and the interval follows from another option.
OTHERS = ("default_root_dir", "model_registry", "val_check_interval")
OPTIONS = [name for name in inspect.signature(Trainer).parameters if name not in OTHERS]
# Options that accept -7.
HARMLESS = {"log_every_n_steps", "enable_autolog_hparams"}


VALUES = ("nonsense", "-7", "{a: 3}", "0.05", "[headstart.modules.Replay]")


def changes_something(option: str, value: str) -> bool:
    if value not in ("-7", "0.05"):
        return True
    return option not in HARMLESS and not (option.startswith("limit_") and value == "0.05")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "value"),
    [(option, value) for option in OPTIONS for value in VALUES if changes_something(option, value)],
)
def test_no_nonsense_ends_in_a_traceback(
    option: str, value: str, fit: Fit, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    line = error_line(capsys, lambda: fit(f"--trainer.{option}={value}"))
    # Python's own message about the arguments of a duration names no option.
    unnamed = (option, value) == ("max_time", "{a: 3}")
    assert line.startswith("error: trainer:" if unnamed else f"error: trainer.{option}")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--trainer.accelerator=gpuu", "error: trainer.accelerator: "),
        ("--trainer.devices=99", "error: trainer.devices: "),
        ("--trainer.max_time=soon", "error: trainer.max_time: "),
        ("--trainer.devices=0", "error: trainer.devices: "),
        ("--trainer.num_sanity_val_steps=-1", "error: trainer.num_sanity_val_steps: -1 would change the protocol"),
        ("--trainer.limit_val_batches=3", "error: trainer.limit_val_batches: 3"),
        ("--trainer.limit_train_batches=3", "error: trainer.limit_train_batches: 3"),
        ("--trainer.check_val_every_n_epoch=2", "error: trainer.check_val_every_n_epoch: 2 would change"),
        (
            "--trainer.callbacks={class_path: EarlyStopping, init_args: {monitor: loss}}",
            "error: trainer.callbacks: EarlyStopping would change",
        ),
        ("--trainer.barebones=true", "error: trainer.barebones: True would change the protocol"),
        ("--seed_everything=true", "error: seed_everything: expected a whole number from 0 to 4294967295, not true"),
        ("--trainer.min_steps=3", "error: trainer.min_steps: 3 would change"),
        ("--trainer.precision=bf16-true", "error: trainer.precision: bf16-true does not fit this stream; give 32-true"),
        ("--trainer.precision=16-mixed", "error: trainer.precision: 16-mixed does not fit this stream; give 32-true"),
        ("--trainer.precision=16", "error: trainer.precision: 16-mixed does not fit this stream; give 32-true"),
        ("--trainer.precision=64-true", "error: trainer.precision: 64-true does not fit this stream"),
        ("--trainer.enable_checkpointing=true", "error: trainer.enable_checkpointing: True would change"),
        (
            "--trainer.callbacks={class_path: StochasticWeightAveraging, init_args: {swa_lrs: 0.1}}",
            "error: trainer.callbacks: StochasticWeightAveraging would change the protocol",
        ),
        ("--trainer.num_sanity_val_steps=2", "error: trainer.num_sanity_val_steps: 2 would change the protocol"),
        ("--trainer.check_val_every_n_epoch=0", "error: trainer.check_val_every_n_epoch: 0 would change"),
        ("--trainer.accumulate_grad_batches=2", "error: trainer.accumulate_grad_batches: 2 would change"),
        ("--trainer.gradient_clip_val=0.5", "error: trainer.gradient_clip_val: 0.5 would change"),
        (
            "--trainer.callbacks=headstart.modules.Replay",
            "error: trainer.callbacks: headstart.modules.Replay is no Callback",
        ),
        ("--trainer.logger=headstart.callbacks.DashboardLoger", "(closest: headstart.callbacks.DashboardLogger)"),
        ("--trainer.logger.mode=online", "error: trainer.logger: lightning.pytorch.loggers.Logger is abstract"),
        ("--trainer.val_check_interval=nonsense", "val_check_interval: it follows from criterion.evaluate_every"),
        ("--optimizer=SGD", "error: optimizer: there is no such option"),
        ("--lr_scheduler=StepLR", "error: lr_scheduler: there is no such option"),
    ],
)
def test_mistake_is_named(option: str, words: str, fit: Fit, capsys: pytest.CaptureFixture[str]) -> None:
    assert words in error_line(capsys, lambda: fit(option))


def test_float16_is_not_replaced_where_bfloat16_is_allowed(fit: Fit, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--data=headstart.datamodules.PhotoStream", "--trainer.precision=16-mixed"]
    line = error_line(capsys, lambda: fit(*options))
    assert "error: trainer.precision: 16-mixed does not fit this stream; give 32-true or bf16-mixed" in line


def test_a_defect_keeps_its_traceback(fit: Fit, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyError("a defect")

    monkeypatch.setattr("headstart.cli.task_cli.LightningCLI.instantiate_trainer", fail)
    with pytest.raises(KeyError, match="a defect"):
        fit()


@pytest.mark.parametrize("folder", ["file", "file/run", "n" * 300, "nul\0", "~nobody_has_this_name/run", ""])
@pytest.mark.parametrize("logger", ["false", "headstart.callbacks.DashboardLogger"])
def test_folder_that_cannot_be_made(
    folder: str, logger: str, fit: Fit, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    before = sorted(tmp_path.rglob("*"))
    line = error_line(capsys, lambda: fit(f"--trainer.logger={logger}", folder=folder))
    assert line.startswith("error: trainer.default_root_dir: ")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_folder_that_is_forbidden(fit: Fit, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    line = error_line(capsys, lambda: fit(folder="locked/run"))
    assert line.startswith("error: trainer.default_root_dir: ")
