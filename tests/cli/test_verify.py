"""`headstart verify` measures stored traces again, and names those that differ."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from headstart.__main__ import main
from headstart.cli.verify import verify
from headstart.output.errors import UserError
from headstart.store.ledger import Ledger
from headstart.store.ledger_file import Trace, TraceKey
from headstart.store.ledger_reader import LedgerReader

Fit = Callable[..., Path]


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Store the traces of runs in a ledger of this test."""
    monkeypatch.setenv("HEADSTART_LEDGER", str(tmp_path / "ledger"))
    return tmp_path / "ledger"


def alter(folder: Path, change: Callable[[Trace], Trace]) -> None:
    """Change the stored trace of the method `mean` in ordering 1."""
    with LedgerReader(folder) as reader:
        ((stream, _),) = reader.streams().items()
        (method,) = [digest for digest, each in reader.traces(stream).methods.items() if each["told"]["name"] == "mean"]
    key = TraceKey(stream, method, 1)
    with Ledger(folder) as ledger:
        ledger.write({key: change(ledger.read([key])[key])})


def one_more(trace: Trace) -> Trace:
    correct = trace.correct.copy()
    correct[4] += 1
    return replace(trace, correct=correct)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_run_is_as_measured_until_a_count_is_altered(
    fit: Fit, ledger: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = fit("--criterion.threshold=1.0")
    before = content(run), content(ledger)
    verified = verify(str(run), share=1.0)
    assert {name: sorted(each) for name, each in verified.orderings.items()} == {"baseline": [0, 1], "mean": [0, 1]}
    assert "4 traces were measured again and are equal." in capsys.readouterr().out
    assert (content(run), content(ledger)) == before

    alter(ledger, one_more)
    with pytest.raises(SystemExit) as ended:
        main(["verify", str(run), "--share", "1"])
    assert ended.value.code == 1
    printed = capsys.readouterr()
    found = "DIFFERENT: the trace of mean in ordering 1 differs first at evaluation 5 (5 samples)"
    assert found in " ".join(printed.out.split())
    (line,) = [line for line in printed.err.splitlines() if line.startswith("error:")]
    assert "1 of 4 traces" in line


@pytest.mark.slow
def test_lazy_traces_are_compared_too(fit: Fit, tmp_path: Path) -> None:
    lazy = fit("--criterion.evaluation=lazy", f"--results.ledger={tmp_path / 'lazy'}", folder="lazily")
    assert verify(str(lazy), share=1.0).checked == 4


@pytest.mark.slow
def test_a_sample_of_the_traces(fit: Fit, ledger: Path) -> None:
    run = fit("--data.orderings=5")
    chosen = [verify(str(run), share=0.3, seed=seed) for seed in (0, 0, 1)]
    assert [verified.checked for verified in chosen] == [3, 3, 3]
    assert chosen[0].orderings == chosen[1].orderings != chosen[2].orderings
    assert verify(str(run), share=0.0).checked == 1


@pytest.mark.slow
def test_what_cannot_be_verified_is_named(fit: Fit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="run: 'missing' is not the folder of a run"):
        verify("missing")
    run = fit()
    monkeypatch.setenv("HEADSTART_LEDGER", "none")
    with pytest.raises(UserError, match=r"results\.ledger: 'none' cannot be read"):
        verify(str(run))

    monkeypatch.setenv("HEADSTART_LEDGER", str(tmp_path / "empty"))
    Ledger(tmp_path / "empty").close()
    with pytest.raises(UserError, match=r"run: no trace of .* could be measured again"):
        verify(str(run))
