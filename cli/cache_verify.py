"""`headstart cache verify`: computes stored features again, and compares them."""

from pathlib import Path

from headstart.callbacks.run_folder import CONFIG
from headstart.cli.task import begin
from headstart.datamodules.row_check import RowCheck
from headstart.datamodules.sample_stream import SampleStream
from headstart.output.errors import UserError
from headstart.output.printable import say


def cache_verify(run: str) -> RowCheck:
    """Compute one part of the stored features of each split of a comparison again, and remove it if a row is wrong.

    The configuration of a run names the photos, the backbone, the arithmetic and the cache. Remarks on photos that
    cannot be decoded are checked as well. Rounding on another processor, or with another number of threads, is no
    error. The exit code is 1 if a row is wrong.

    Args:
        run: Folder of a run of headstart train, or a configuration of a comparison.

    Returns:
        How many rows were checked and were wrong, and how many parts were removed.

    Raises:
        UserError: There is no such run, it is no comparison, or a row is wrong.
    """
    path = Path(run) / CONFIG if Path(run).is_dir() else Path(run)
    if not path.is_file():
        raise UserError(f"run: {str(path)!r} does not exist; give the folder of a run, or a configuration")
    task = begin([f"--config={path}", "--trainer.logger=false"])
    if not isinstance(task.datamodule, SampleStream):
        raise UserError(f"run: {run!r} is not a comparison and has no features to check; give the folder of one")

    stream, check = task.datamodule, RowCheck()
    stream.trainer = task.trainer
    stream.prepare_data()
    stream.check_rows(check)
    if check.wrong:
        raise UserError(
            f"{check.wrong} of {check.checked} rows were wrong; {check.removed} parts were removed, and are computed "
            "again. Traces measured from them are still in ledgers: measure them again with --results.recompute=true"
        )
    say(f"{check.checked} rows checked, none wrong")
    return check
