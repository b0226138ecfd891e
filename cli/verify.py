"""`headstart verify`: measures stored traces again and compares them."""

import math
from collections.abc import Collection
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import yaml
from jsonargparse.typing import ClosedUnitInterval

from headstart.callbacks.run_folder import CONFIG, result_options
from headstart.callbacks.run_ledger import ledger_folder
from headstart.callbacks.verification import Choose, Verified
from headstart.cli.commands import COMPARISON
from headstart.cli.task import command_line
from headstart.output.errors import UserError, reason_of
from headstart.output.printable import print_lines, say
from headstart.output.seeds import Seed
from headstart.store.ledger_file import LedgerError, TraceKey
from headstart.store.ledger_reader import LedgerReader


def verify(run: str, share: ClosedUnitInterval = 0.1, seed: Seed = 0) -> Verified:
    """Measure some of the stored traces of a run again, and compare them count by count.

    The run is repeated from its configuration. It needs the same photos, code, packages and kind of device, and the
    folder where it was started. Nothing is stored. If a trace differs, the command reports its first evaluation that
    differs and ends with an error.

    Args:
        run: Folder of a run of headstart train.
        share: Share of the traces to measure again, at least one trace.
        seed: Seed of the sample of traces.

    Returns:
        What was measured again.

    Raises:
        UserError: A trace came out differently, or none could be measured again.
    """
    folder = Path(run).expanduser()
    try:
        text = (folder / CONFIG).read_text(encoding="utf-8")
        config, options = yaml.safe_load(text), result_options(text)
        task, ledger = config.get("task", COMPARISON), ledger_folder(config["results"].get("ledger"), folder)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, AttributeError, KeyError, TypeError) as error:
        raise UserError(
            f"run: {str(folder)!r} is not the folder of a run, with its {CONFIG} ({reason_of(error)})"
        ) from error

    generator = np.random.default_rng(seed)
    try:
        verified = _measure(task, options, ledger, lambda keys: _sample(keys, share, generator))
    except LedgerError as error:
        raise UserError(f"run: {error}") from error

    print_lines(f"DIFFERENT: {difference}." for difference in verified.differences)
    if verified.differences:
        raise UserError(
            f"run: {len(verified.differences)} of {verified.checked} traces of {run!r} differ when measured again; the "
            "lines above list them"
        )
    if not verified.checked:
        raise UserError(
            f"run: no trace of {run!r} could be measured again; the ledger {str(ledger)!r} has none of these methods "
            "on these photos with the current code and versions"
        )
    say(f"{verified.checked} traces were measured again and are equal.")
    return verified


def _sample(keys: Collection[TraceKey], share: float, generator: np.random.Generator) -> set[TraceKey]:
    """Sample a share of traces, one at least."""
    ordered = sorted(keys)
    size = min(len(ordered), max(1, math.ceil(share * len(ordered))))
    return {ordered[index] for index in generator.choice(len(ordered), size, replace=False)} if ordered else set()


def _measure(task: str, options: Any, ledger: Path, choose: Choose) -> Verified:  # noqa: ANN401 - whatever YAML holds
    """Build a run again, and measure traces of it."""
    with TemporaryDirectory(prefix="headstart-") as scratch:
        file = Path(scratch) / CONFIG
        file.write_text(yaml.safe_dump(options), encoding="utf-8")
        folder = Path(scratch) / "run"
        cli = command_line(task)([f"--config={file}", f"--trainer.default_root_dir={folder}", "--trainer.logger=false"])
        cli.use_ledger(partial(LedgerReader, ledger))
        verified = cli.verify(choose)
    for method, orderings in verified.orderings.items():
        plural = "s" * (len(orderings) > 1)
        print_lines([f"Measured again: {method} in ordering{plural} {', '.join(map(str, orderings))}."])
    return verified
