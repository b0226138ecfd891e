"""Whether Weights & Biases logs online, and where it says that it does: one rule for every command."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

from output.errors import UserError

Mode = Literal["auto", "online", "offline"]

VARIABLE = "WANDB_MODE"
# What wandb takes as its variable; the last two are older names.
MODES = ("online", "offline", "shared", "disabled", "dryrun", "run")


def resolve_mode(mode: Mode) -> str | None:
    """Give the mode for `wandb.init`.

    Args:
        mode: `auto` is online where an API key is set up and offline elsewhere.

    Returns:
        The mode; None leaves it to the environment variable WANDB_MODE, which wins.

    Raises:
        UserError: The variable is none of wandb's modes.
    """
    variable = os.environ.get(VARIABLE)
    if variable is not None:
        if variable not in MODES:
            msg = f"{VARIABLE}: {variable!r} is no mode of Weights & Biases; allowed are {', '.join(MODES)}"
            raise UserError(msg)
        return None
    if mode != "auto":
        return mode
    import wandb

    return "online" if wandb.login(prompt=False, verify=False) else "offline"


def quiet_settings() -> Any:  # noqa: ANN401 - wandb.Settings, which is not imported where nothing is logged
    """Keep the dashboard's summary off the terminal, where the command's own output stands.

    Returns:
        Settings for `wandb.init`.
    """
    import wandb

    return wandb.Settings(silent=True)


def print_destination(run: Any) -> None:  # noqa: ANN401 - wandb's run, for the same reason
    """Print where a run is to be seen, or how it is uploaded.

    Args:
        run: The run, as `wandb.init` gave it.
    """
    where = f"logs offline; to upload: wandb sync {Path(run.dir).parent}" if run.offline else f"logs to {run.url}"
    if not run.disabled:
        print(f"Weights & Biases {where}")
