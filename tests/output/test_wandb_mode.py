"""Weights & Biases's own variable is checked before a computation starts."""

from __future__ import annotations

from typing import get_args

import pytest

from output.errors import UserError
from output.wandb_mode import MODES, resolve_mode


def test_modes_are_those_of_wandb() -> None:
    wandb = pytest.importorskip("wandb")
    assert set(MODES) == set(get_args(wandb.Settings.model_fields["mode"].annotation))


@pytest.mark.parametrize("variable", MODES)
def test_variable_wins(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv("WANDB_MODE", variable)
    assert resolve_mode("offline") is None


@pytest.mark.parametrize("variable", ["bogus", "", "OFFLINE"])
def test_unknown_variable(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv("WANDB_MODE", variable)
    with pytest.raises(
        UserError, match=f"WANDB_MODE: '{variable}' is no mode of Weights & Biases; allowed are online, "
    ):
        resolve_mode("auto")
