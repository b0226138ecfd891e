"""Runs of Weights & Biases that mirror results."""

import os
import shlex
import ssl
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from types import ModuleType, SimpleNamespace
from typing import Any, Literal
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from headstart.output.errors import UserError
from headstart.output.printable import say

Mode = Literal["auto", "online", "offline"]
# Names of the columns, and rows, by the table's name.
Tables = Mapping[str, tuple[Sequence[str], Sequence[Sequence[Any]]]]

VARIABLE = "WANDB_MODE"
# Values that wandb accepts for the variable; the last two are older names.
MODES = ("online", "offline", "shared", "disabled", "dryrun", "run")
# Seconds to wait for a server's answer, and for the beginning of a run that may also go offline.
TIMEOUT, INIT_TIMEOUT = 3.0, 20.0
# The module in which wandb looks for inputs of a run that its launch started.
LAUNCH_INPUTS = "wandb.sdk.launch.inputs.internal"
# Codes of a proxy for a server that it cannot reach.
GATEWAY_ERRORS = (502, 503, 504)


@dataclass(frozen=True)
class Dashboard:
    """Where a result is mirrored in Weights & Biases.

    Args:
        project: Project in the dashboard.
        entity: User or team that owns the project; by default that of the account.
        name: Name of the run; by default the command and the sizes of its data.
        group: Group of runs in the dashboard; none by default.
        tags: Tags of the run.
        mode: `auto` logs online if an API key is set up and the server answers, otherwise offline. The environment
            variable WANDB_MODE overrides it.
    """

    project: str = "headstart"
    entity: str | None = None
    name: str | None = None
    group: str | None = None
    tags: list[str] = field(default_factory=list)
    mode: Mode = "auto"


def check_dashboard(options: Dashboard) -> None:
    """Check the dashboard before a result is computed, so that a long computation does not end in an error.

    Args:
        options: Where the result is to be mirrored.

    Raises:
        UserError: wandb is not installed, WANDB_MODE is unknown, or the mode is online without an API key.
    """
    require_wandb("logger")
    if not variable_decides() and options.mode == "online" and not _has_key():
        raise UserError("dashboard.mode: online, but no API key is set up; wandb login, or --dashboard.mode=offline")


def require_wandb(option: str) -> None:
    """Raise a UserError that names the option that needs wandb, if it is not installed."""
    if find_spec("wandb") is None:
        raise UserError(f"{option}: wandb is not installed; pip install wandb, or go without: --{option}=false")


def variable_decides() -> bool:
    """Whether the environment variable WANDB_MODE chooses the mode.

    Raises:
        UserError: Its value is not one of wandb's modes.
    """
    variable = os.environ.get(VARIABLE)
    if variable is not None and variable not in MODES:
        raise UserError(f"{VARIABLE}: {variable!r} is no mode of Weights & Biases; allowed are {', '.join(MODES)}")
    return variable is not None


def _has_key() -> bool:
    import wandb

    return bool(wandb.login(prompt=False, verify=False))


def _resolve_mode(mode: Mode) -> str | None:
    """Return the mode for `wandb.init`; None leaves it to WANDB_MODE, which wins."""
    if variable_decides():
        return None
    if mode != "auto":
        return mode
    if not _has_key():
        return "offline"
    import wandb

    url = wandb.setup().settings.base_url
    problem = find_problem(url)
    if problem is not None:
        _warn_of_going_offline(f"{url} cannot be reached: {problem}")
    return "online" if problem is None else "offline"


def find_problem(url: str) -> str | None:
    """Return why a server cannot be reached; None if it answers within seconds, with whatever code."""
    problem: list[str | None] = [f"no answer within {TIMEOUT:g} seconds"]

    def connect() -> None:
        try:
            with urlopen(Request(url, method="HEAD"), timeout=TIMEOUT):
                problem[0] = None
        except HTTPError as error:
            problem[0] = str(error) if error.code in GATEWAY_ERRORS else None
        except (OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "reason", error)
            # wandb has certificates of its own.
            problem[0] = None if isinstance(reason, ssl.SSLError) else str(reason) or type(reason).__name__

    # Looking up a name has no time limit of its own.
    thread = Thread(target=connect, daemon=True)
    thread.start()
    thread.join(TIMEOUT)
    return problem[0]


def begin_run(mode: Mode, options: Mapping[str, Any]) -> Any:  # noqa: ANN401 - wandb's run, imported late
    """Begin a run, and print its address, or how to upload it.

    If `auto` chose online and the server then does not answer, the run is logged offline.

    Args:
        mode: As chosen by the user.
        options: Further arguments of `wandb.init`.

    Returns:
        The run; wandb prints nothing itself.

    Raises:
        wandb.Error: Weights & Biases rejects the run.
    """
    import wandb

    chosen, settings = _resolve_mode(mode), wandb.Settings(silent=True)
    may_go_offline = mode == "auto" and chosen == "online"
    if may_go_offline:
        settings.init_timeout = INIT_TIMEOUT
    with _without_launch():
        try:
            run = wandb.init(**{**options, "mode": chosen, "settings": settings})
        except wandb.errors.AuthenticationError:
            raise
        except wandb.errors.CommError as error:
            if not may_go_offline:
                raise
            _warn_of_going_offline(str(error).partition("\n")[0])
            run = wandb.init(**{**options, "mode": "offline", "settings": wandb.Settings(silent=True)})

    if run.offline and not run.disabled:
        say(f"Weights & Biases logs offline; to upload: wandb sync {shlex.quote(str(Path(run.dir).parent))}")
    elif not run.disabled:
        say(f"Weights & Biases logs to {run.url}")
    return run


@contextmanager
def _without_launch() -> Iterator[None]:
    """Begin a run without `wandb.sdk.launch`: wandb imports it for inputs that only code that has imported it can set.

    It takes as long to import as half of wandb.
    """
    if "wandb.sdk.launch" in sys.modules:
        yield
        return
    nothing = ModuleType(LAUNCH_INPUTS)
    nothing.StagedLaunchInputs = lambda: SimpleNamespace(apply=lambda run: None)  # type: ignore[attr-defined]
    sys.modules[LAUNCH_INPUTS] = nothing
    try:
        yield
    finally:
        del sys.modules[LAUNCH_INPUTS]


def _warn_of_going_offline(problem: str) -> None:
    say(f"warning: Weights & Biases goes offline: {problem}", sys.stderr)


def log_files(run: Any, kind: str, tables: Tables, files: Sequence[Path]) -> None:  # noqa: ANN401 - wandb's run
    """Log tables, and files as an artifact of a kind; PNG files also as images, by their names without the ending."""
    import wandb

    logged = {
        name: wandb.Table(columns=list(columns), data=[list(row) for row in rows])
        for name, (columns, rows) in tables.items()
    }
    run.log({**logged, **{path.stem: wandb.Image(str(path)) for path in files if path.suffix == ".png"}})
    artifact = wandb.Artifact(f"{kind}-{run.id}", type=kind)
    for path in files:
        artifact.add_file(str(path))
    run.log_artifact(artifact)


def scalars(document: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the numbers, texts and truth values of a document with their paths."""
    for key, value in document.items():
        if isinstance(value, Mapping):
            yield from scalars(value, f"{prefix}{key}/")
        elif isinstance(value, (str, int, float)):
            yield f"{prefix}{key}", value
