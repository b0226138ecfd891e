"""`headstart verify`: measures stored traces again and compares them."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator
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
from headstart.cli.commands import COMPARISON, TASKS
from headstart.cli.task import command_line
from headstart.output.errors import UserError, reason_of
from headstart.output.printable import print_lines, say
from headstart.output.seeds import Seed
from headstart.store.ledger_file import FILE, LedgerError, TraceKey
from headstart.store.ledger_reader import LedgerReader


def verify(run_or_ledger: str, share: ClosedUnitInterval = 0.1, seed: Seed = 0) -> list[Verified]:
    """Measure some of the stored traces of a run or of a ledger again, and compare them count by count.

    The run is repeated from its configuration. It needs the same photos, code, packages and kind of device, and the
    folder where it was started. Nothing is stored. If a trace differs, the command reports its first evaluation that
    differs and ends with an error.

    Args:
        run_or_ledger: Folder of a run of headstart train, or of a ledger.
        share: Share of the traces to measure again, at least one trace.
        seed: Seed of the sample of traces.

    Returns:
        What was measured again, by run.

    Raises:
        UserError: A trace came out differently, or none could be measured again.
    """
    folder = Path(run_or_ledger).expanduser()
    generator = np.random.default_rng(seed)
    try:
        if (folder / FILE).is_file():
            verified = list(_verify_ledger(folder, share, generator))
        else:
            verified = [_verify_run(folder, share, generator)]
    except LedgerError as error:
        raise UserError(f"run_or_ledger: {error}") from error

    differences = [difference for run in verified for difference in run.differences]
    checked = sum(run.checked for run in verified)
    print_lines(f"DIFFERENT: {difference}." for difference in differences)
    if differences:
        raise UserError(
            f"run_or_ledger: {len(differences)} of {checked} traces in {run_or_ledger!r} differ when measured "
            "again; the lines above list them"
        )
    if not checked:
        raise UserError(
            f"run_or_ledger: no trace in {run_or_ledger!r} could be measured again; the ledger has none of "
            "these methods on these photos with the current code and versions"
        )
    say(f"{checked} traces were measured again and are equal.")
    return verified


def _verify_run(folder: Path, share: float, generator: np.random.Generator) -> Verified:
    """Verify traces of one run, from its configuration, in the ledger that the same command would use."""
    try:
        text = (folder / CONFIG).read_text(encoding="utf-8")
        config, options = yaml.safe_load(text), result_options(text)
        task, ledger = config.get("task", COMPARISON), ledger_folder(config["results"].get("ledger"), folder)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, AttributeError, KeyError, TypeError) as error:
        raise UserError(
            f"run_or_ledger: {str(folder)!r} is neither a ledger nor the folder of a run, with its {CONFIG} "
            f"({reason_of(error)})"
        ) from error
    return _measure(task, options, ledger, lambda keys: _sample(keys, share, generator))


def _verify_ledger(folder: Path, share: float, generator: np.random.Generator) -> Iterator[Verified]:
    """Verify finished traces of a ledger, by the runs that measured them."""
    with LedgerReader(folder) as ledger:
        runs = ledger.runs()
        stored = {
            TraceKey(stream, method, ordering)
            for task in TASKS
            for stream in ledger.streams(task)
            for method, ordering in ledger.traces(stream).counts
        }
    measured_by = {
        TraceKey(run["stream"], method, ordering): index
        for index, run in enumerate(runs)
        for method in run["methods"]
        for ordering in run["orderings"]
    }
    if unknown := len(stored - measured_by.keys()):
        print_lines([f"NOT CHECKED: {unknown} traces; the ledger does not say which runs measured them."])

    keys_of_run = defaultdict(set)
    for key in _sample(stored & measured_by.keys(), share, generator):
        keys_of_run[measured_by[key]].add(key)
    for index, keys in sorted(keys_of_run.items()):
        try:
            verified = _measure(runs[index]["task"], runs[index]["options"], folder, keys.intersection)
        except UserError as error:
            print_lines([f"NOT CHECKED: {len(keys)} traces, whose run cannot be repeated: {error}"])
            continue
        if missing := len(keys) - verified.checked:
            reason = (
                "photos, code or versions have changed, or the method took random numbers for several orderings at once"
            )
            print_lines([f"NOT CHECKED: {missing} traces; {reason}."])
        yield verified


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
