"""Runs of Weights & Biases that mirror results."""

import hashlib
import json
import os
import re
import secrets
import shlex
import ssl
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from headstart.output.errors import UserError
from headstart.output.files import write_texts
from headstart.output.printable import say

Mode = Literal["auto", "online", "offline"]
# Names of the columns, and rows, by the table's name.
Tables = Mapping[str, tuple[Sequence[str], Sequence[Sequence[Any]]]]

VARIABLE = "WANDB_MODE"
# Values that wandb accepts for the variable; the last two are older names.
MODES = ("online", "offline", "shared", "disabled", "dryrun", "run")
# Seconds to wait for a server's answer, and for the beginning of a run that may also go offline.
TIMEOUT, INIT_TIMEOUT = 3.0, 20.0
# The longest names and groups, and the longest tags, that the dashboard accepts.
LONGEST, LONGEST_TAG = 128, 64
# File of a results folder that names its run.
RECORD = "wandb_run.json"
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
    """Return whether the environment variable WANDB_MODE chooses the mode.

    Raises:
        UserError: Its value is not one of wandb's modes.
    """
    mode = os.environ.get(VARIABLE)
    if mode is not None and mode not in MODES:
        raise UserError(f"{VARIABLE}: {mode!r} is no mode of Weights & Biases; allowed are {', '.join(MODES)}")
    return mode is not None


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
    try:
        with urlopen(Request(url, method="HEAD"), timeout=TIMEOUT):
            return None
    except HTTPError as error:
        return str(error) if error.code in GATEWAY_ERRORS else None
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        # wandb has certificates of its own.
        return None if isinstance(reason, ssl.SSLError) else str(reason) or type(reason).__name__


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

    resolved, settings = _resolve_mode(mode), wandb.Settings(silent=True)
    may_go_offline = mode == "auto" and resolved == "online"
    if may_go_offline:
        settings.init_timeout = INIT_TIMEOUT
    try:
        run = wandb.init(**{**options, "mode": resolved, "settings": settings})
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


def _warn_of_going_offline(problem: str) -> None:
    say(f"warning: Weights & Biases goes offline: {problem}", sys.stderr)


class RunRecord:
    """The run that belongs to the results in a folder, so that a repeated command continues it instead of a new one.

    It is kept in the folder, in `wandb_run.json`. An agent of Weights & Biases chooses the runs itself.

    Args:
        folder: Folder of the results.
        decided_by: All that decides the results, JSON values; other results belong to another run.

    Attributes:
        id: The run's id.
        is_published: Whether the results were logged to their end.
    """

    def __init__(self, folder: Path, decided_by: object) -> None:
        text = json.dumps(decided_by, sort_keys=True, default=str)
        self._path, self._identity = folder / RECORD, hashlib.sha256(text.encode()).hexdigest()
        self.id, self.is_published = secrets.token_hex(4), False
        with suppress(OSError, ValueError, TypeError, KeyError):
            stored = json.loads(self._path.read_text(encoding="utf-8"))
            is_same = stored["identity"] == self._identity and re.fullmatch("[0-9a-f]{8}", stored["id"])
            if is_same and not is_agents():
                self.id, self.is_published = stored["id"], bool(stored["published"])

    def options(self) -> dict[str, str]:
        """Return the arguments of `wandb.init` that continue the run; none under an agent."""
        return {} if is_agents() else {"id": self.id, "resume": "allow"}

    def store(self, run: Any, is_published: bool = False) -> None:  # noqa: ANN401 - wandb's run
        """Store the run's id, unless Weights & Biases is switched off.

        Args:
            run: The run.
            is_published: Whether the results were logged to their end.

        Raises:
            UserError: The folder cannot be written.
        """
        content = {"id": run.id, "identity": self._identity, "published": is_published}
        if not run.disabled:
            write_texts(self._path.parent, {RECORD: json.dumps(content) + "\n"})


def is_agents() -> bool:
    """Return whether an agent of Weights & Biases has started this process."""
    return "WANDB_SWEEP_ID" in os.environ or "WANDB_RUN_ID" in os.environ


def log_files(run: Any, kind: str, name: str, tables: Tables, files: Sequence[Path]) -> None:  # noqa: ANN401 - wandb's run
    """Log tables, and files as an artifact; PNG and HTML files are also shown, by their names without the ending.

    Args:
        run: The run.
        kind: Kind of the artifact.
        name: Name of the artifact. Later files of the same name become its next version.
        tables: Columns and rows, by the table's name.
        files: The files.
    """
    import wandb

    logged: dict[str, Any] = {
        name: wandb.Table(columns=list(columns), data=[list(row) for row in rows])
        for name, (columns, rows) in tables.items()
    }
    logged |= {path.stem: wandb.Image(str(path)) for path in files if path.suffix == ".png"}
    logged |= {path.stem: wandb.Html(str(path)) for path in files if path.suffix == ".html"}
    if logged:
        run.log(logged)

    artifact = wandb.Artifact(re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII)[:LONGEST], type=kind)
    for path in files:
        artifact.add_file(str(path))
    run.log_artifact(artifact)


def scalars(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers, texts and truth values at the top of a document, which become a run's summary.

    What lies deeper is in its tables and files.
    """
    return {key: value for key, value in document.items() if isinstance(value, str | int | float)}
