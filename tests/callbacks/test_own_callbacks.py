"""Callbacks of a user's own are part of the key, and results name them."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headstart.tests.material.scripted_runs import read

FLIP = """\
from lightning.pytorch import Callback
from lightning.pytorch.callbacks import LambdaCallback
class Flip(Callback):
    def __init__(self, by=1):
        self.by = by
    def on_train_batch_start(self, trainer, module, batch, index):
        batch[1].copy_((batch[1] + self.by) % 2)
def flip(trainer, module, batch, index):
    batch[1].copy_(1 - batch[1])
"""
Fit = Callable[..., Path]


@pytest.fixture
def flip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("HEADSTART_LEDGER", str(tmp_path / "ledger"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(text: str) -> None:
        sys.modules.pop("own_flip", None)
        (tmp_path / "own_flip.py").write_text(text)
        importlib.invalidate_caches()

    write(FLIP)
    yield write
    sys.modules.pop("own_flip", None)


def counts(folder: Path) -> tuple[int, int]:
    times = read(folder)["times"]
    return times["computed_traces"], times["reused_traces"]


@pytest.mark.slow
def test_a_callback_and_its_code_and_arguments_are_part_of_the_key(
    flip: Callable[[str], None], fit: Fit, capsys: pytest.CaptureFixture[str]
) -> None:
    flipped = fit("--trainer.callbacks=own_flip.Flip", folder="flipped")
    measured, _ = counts(flipped)
    plain = fit(folder="plain")
    assert counts(plain) == (measured, 0)
    assert counts(fit("--trainer.callbacks=own_flip.Flip", folder="again")) == (0, measured)
    other = fit('--trainer.callbacks={"class_path": "own_flip.Flip", "init_args": {"by": 2}}', folder="other")
    assert counts(other) == (measured, 0)
    flip(FLIP.replace("% 2", "% 2 * 1"))
    assert counts(fit("--trainer.callbacks=own_flip.Flip", folder="edited")) == (measured, 0)
    with pytest.raises(SystemExit):
        fit("--trainer.callbacks=own_flip.Flip", folder="flipped")
    assert "holds results of another callbacks" in capsys.readouterr().err


def test_results_name_callbacks(flip: Callable[[str], None], fit: Fit) -> None:
    document = read(fit("--trainer.callbacks+=own_flip.Flip", "--trainer.callbacks+=own_flip.Flip"))
    described = document["protocol"]["callbacks"]
    assert [*described] == ["own_flip.Flip", "own_flip.Flip (2)"]
    assert {"headstart", "own_flip"} <= described["own_flip.Flip"]["code"].keys()
    assert any("own_flip.Flip" in warning for warning in document["warnings"])


@pytest.mark.slow
def test_observers_of_lightning_are_no_part_of_the_key(flip: Callable[[str], None], fit: Fit) -> None:
    plain = fit(folder="plain")
    timed = fit("--trainer.callbacks=DeviceStatsMonitor", folder="timed")
    assert counts(timed) == (0, sum(counts(plain)))
    assert "callbacks" not in read(timed)["protocol"]
    # But those that call code of the user's own are.
    option = '{"class_path": "own_flip.LambdaCallback", "init_args": {"on_train_batch_start": "own_flip.flip"}}'
    assert counts(fit(f"--trainer.callbacks={option}", folder="flipped")) == counts(plain)
