"""A run whose files are damaged in any place is left out by name, or read as it was written."""

from contextlib import suppress
from pathlib import Path

import numpy as np

from headstart.evaluation.leaderboard.leaderboard import leaderboard
from headstart.evaluation.report.report import report
from headstart.evaluation.runs import FILES, read_run
from headstart.evaluation.sample_efficiency import sample_efficiency
from headstart.output.errors import UserError
from headstart.tests.material.runs import TRACES, write_run, write_runs


def damage(content: bytes, generator: np.random.Generator) -> bytes:
    """Flip a bit, cut off the end, or overwrite some bytes."""
    place, kind = int(generator.integers(len(content))), int(generator.integers(3))
    if kind == 0:
        return content[:place] + bytes([content[place] ^ 1 << int(generator.integers(8))]) + content[place + 1 :]
    if kind == 1:
        return content[:place]
    return content[:place] + generator.bytes(20) + content[place + 20 :]


def test_damaged_files_are_named_and_never_read_as_something_else(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    whole, generator = read_run(folder), np.random.default_rng(0)
    contents, unnoticed = {name: (folder / name).read_bytes() for name in FILES}, 0
    for index in range(200):
        name = FILES[index % len(FILES)]
        (folder / name).write_bytes(damage(contents[name], generator))
        with suppress(UserError):
            run = read_run(folder)
            assert (run.document, run.protocol) == (whole.document, whole.protocol)
            assert run.curves.correct.tolist() == TRACES.tolist()
            unnoticed += 1
        (folder / name).write_bytes(contents[name])
    # A space may be another space in JSON.
    assert unnoticed < 10


def test_commands_leave_a_damaged_run_out_and_name_it(tmp_path: Path) -> None:
    write_runs(tmp_path / "runs", {"damaged": {}, "whole": {}})
    (tmp_path / "runs" / "damaged" / "curves.npz").write_bytes(b"PK\3\4")
    patterns = str(tmp_path / "runs" / "*")

    scored = sample_efficiency(patterns)
    assert scored["runs"] == [str(tmp_path / "runs" / "whole")]
    ranked = leaderboard(patterns, output=str(tmp_path / "ranked"))
    page = report(str(tmp_path / "runs"), output=str(tmp_path / "report.html")).read_text()
    for told in (scored["warnings"][0], ranked["left_out"][0]["reason"], page):
        assert "are damaged" in told
