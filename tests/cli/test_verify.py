"""`headstart verify` measures stored traces again, and names those that differ."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from lightning.pytorch import Trainer

from headstart.__main__ import main
from headstart.callbacks import SampleEfficiency
from headstart.cli.verify import verify
from headstart.modules.comparison import Comparison
from headstart.output.errors import INCOMPLETE, UserError
from headstart.store.class_counts import pack, unpack
from headstart.store.ledger_checks import checksum
from headstart.store.ledger_file import FILE

Fit = Callable[..., Path]
TRACE = "stream, method, ordering, correct, diverged, open"


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Store the traces of runs in a ledger of this test."""
    monkeypatch.setenv("HEADSTART_LEDGER", str(tmp_path / "ledger"))
    return tmp_path / "ledger"


def alter(ledger: Path, name: str, ordering: int, evaluation: int) -> tuple[int, int]:
    """Add one to a stored count, with a checksum that fits; give the count before and after."""
    with closing(sqlite3.connect(ledger / FILE)) as base:
        methods = base.execute("SELECT digest, document FROM origins").fetchall()
        (method,) = [digest for digest, text in methods if json.loads(text).get("told", {}).get("name") == name]
        where = "WHERE method = ? AND ordering = ?"
        (row,) = base.execute(f"SELECT {TRACE} FROM traces {where}", (method, ordering)).fetchall()
        counts = np.frombuffer(row[3], "<i4").copy()
        counts[evaluation] += 1
        row = (*row[:3], counts.tobytes(), *row[4:])
        base.execute(f"UPDATE traces SET correct = ?, checksum = ? {where}", (row[3], checksum(*row), method, ordering))
        base.commit()
    return int(counts[evaluation]) - 1, int(counts[evaluation])


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("evaluation", ["every", "lazy"])
def test_a_run_and_a_ledger_whose_traces_are_as_measured(
    fit: Fit, ledger: Path, evaluation: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = fit(f"--criterion.evaluation={evaluation}")
    before = content(run), content(ledger)
    capsys.readouterr()
    for folder in (run, ledger):
        (verified,) = verify(str(folder), share=1.0)
        assert {name: sorted(orderings) for name, orderings in verified.orderings.items()} == {
            "baseline": [0, 1],
            "mean": [0, 1],
        }
        printed = " ".join(capsys.readouterr().out.split())
        assert "Measured again: mean in orderings 0, 1." in printed
        assert "4 traces were measured again and are equal." in printed
    assert (content(run), content(ledger)) == before


@pytest.mark.slow
def test_an_altered_count_is_found(fit: Fit, ledger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = fit("--criterion.threshold=1.0")
    then, now = alter(ledger, "mean", 1, 4)
    for folder in (run, ledger):
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(["verify", str(folder), "--share", "1"])
        assert ended.value.code == 1
        printed = capsys.readouterr()
        assert (
            f"DIFFERENT: the trace of mean in ordering 1 differs first at evaluation 5 (5 samples): {now} correct "
            f"predictions are stored, measured again there are {then}, which rounding on another processor can explain."
        ) in " ".join(printed.out.split())
        (line,) = [line for line in printed.err.splitlines() if line.startswith("error:")]
        assert "1 of 4 traces" in line


@pytest.mark.slow
def test_an_altered_count_of_a_class_is_found(fit: Fit, ledger: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = fit("--results.per_class=true", "--criterion.threshold=1.0")
    (verified,) = verify(str(run), share=1.0)
    assert verified.checked == 4
    with closing(sqlite3.connect(ledger / FILE)) as base:
        row = base.execute("SELECT stream, method, ordering, counts FROM class_counts ORDER BY method").fetchone()
        counts = unpack(row[3])
        # A sample of one class takes the place of one of the other, so that the sum stays.
        by = [1, -1] if counts[7, 0] < counts[0, 0] and counts[7, 1] else [-1, 1]
        then, now = counts[7, 0] + by[0], counts[7, 0]
        counts[7] = counts[7] + by
        row = (*row[:3], pack(counts))
        where = "WHERE stream = ? AND method = ? AND ordering = ?"
        base.execute(f"UPDATE class_counts SET counts = ?, checksum = ? {where}", (row[3], checksum(*row), *row[:3]))
        base.commit()
    for folder in (run, ledger):
        capsys.readouterr()
        with pytest.raises(UserError, match="1 of 4 traces"):
            verify(str(folder), share=1.0)
        expected = (
            f"differs first at evaluation 7 (7 samples): {then} correct predictions of the class dark are stored, "
            f"measured again there are {now}"
        )
        assert expected in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
def test_share_and_seed_choose_the_traces(fit: Fit, ledger: Path) -> None:
    run = fit("--data.orderings=5")
    chosen = [verify(str(run), share=0.3, seed=seed)[0] for seed in (0, 0, 1)]
    assert [verified.checked for verified in chosen] == [3, 3, 3]
    assert chosen[0].orderings == chosen[1].orderings != chosen[2].orderings
    assert verify(str(run), share=0.0)[0].checked == 1


@pytest.mark.slow
def test_a_ledger_of_several_runs(fit: Fit, ledger: Path) -> None:
    fit()
    fit("--data.orderings=3", folder="more")
    shutil.rmtree(fit("--data.batch_size=2", folder="batches"))
    verified = verify(str(ledger), share=1.0)
    assert sum(each.checked for each in verified) == 10
    assert {name for each in verified for name in each.orderings} == {"baseline", "mean"}


@pytest.mark.slow
def test_a_run_that_was_cut_off_is_compared_as_far_as_it_went(
    fit: Fit, ledger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(SampleEfficiency, "on_validation_end", _stop_after_seven(SampleEfficiency.on_validation_end))
        with pytest.raises(SystemExit) as ended:
            fit("--criterion.threshold=1.0")
    assert ended.value.code == INCOMPLETE
    (verified,) = verify(str(tmp_path / "run"), share=1.0)
    assert verified.checked == 4
    # A ledger alone is verified by what is finished.
    with pytest.raises(UserError, match="no trace in"):
        verify(str(ledger))
    alter(ledger, "baseline", 0, 6)
    capsys.readouterr()
    with pytest.raises(UserError, match="1 of 4 traces"):
        verify(str(tmp_path / "run"), share=1.0)
    assert "of baseline in ordering 0 differs first at evaluation 7" in " ".join(capsys.readouterr().out.split())


def _stop_after_seven(measure: Callable[..., None]) -> Callable[..., None]:
    def stop(self: SampleEfficiency, trainer: Trainer, module: Comparison) -> None:
        measure(self, trainer, module)
        trainer.should_stop = module.samples_seen == 7

    return stop


@pytest.mark.slow
def test_what_is_no_run_is_an_error(fit: Fit, ledger: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="run_or_ledger: 'missing' is neither a ledger nor the folder of a run"):
        verify("missing")
    run = fit()
    with pytest.raises(UserError, match="ledger: 'none' is not a ledger"):
        verify(str(run), ledger="none")
    fit("--results.ledger=other", "--seed_everything=1", folder="two")
    with pytest.raises(UserError, match=r"run_or_ledger: no trace in .* could be measured again"):
        verify(str(run), ledger="other")
    (run / "config.yaml").write_text("[1, 2")
    with pytest.raises(UserError, match="is neither a ledger nor the folder of a run"):
        verify(str(run))


@pytest.mark.slow
def test_runs_that_cannot_be_built_again_are_named(
    fit: Fit, ledger: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fit("--data.max_samples=20")
    (tmp_path / "pictures" / "train" / "dark" / "0.jpg").unlink()
    capsys.readouterr()
    with pytest.raises(UserError, match="no trace in"):
        verify(str(ledger), share=1.0)
    assert "NOT CHECKED: 4 traces; photos, code or versions have changed" in " ".join(capsys.readouterr().out.split())
    (tmp_path / "pictures").rename(tmp_path / "moved")
    with pytest.raises(UserError, match="no trace in"):
        verify(str(ledger), share=1.0)
    assert "NOT CHECKED: 4 traces, whose run cannot be repeated" in " ".join(capsys.readouterr().out.split())
