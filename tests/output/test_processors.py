"""Processors are counted by what the process may use, and threads sleep while they wait."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from output import processors
from output.processors import count_processors, share_processors


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")
def test_affinity_counts() -> None:
    there = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(there)})
        assert count_processors() == 1
    finally:
        os.sched_setaffinity(0, there)


QUOTAS = {"200000 100000": 2, "150000 100000": 2, "10000 100000": 1, "9900000 100000": 64, "max 100000": 64, "": 64}


@pytest.mark.parametrize(("quota", "count"), QUOTAS.items())
def test_quota_of_a_container_counts(quota: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cpu.max").write_text(quota)
    monkeypatch.setattr(processors, "QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(64)), raising=False)
    assert count_processors() == count


@pytest.mark.parametrize(("given", "kept"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_waiting_is_passive_unless_the_user_decided(
    given: str | None, kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    if given is not None:
        monkeypatch.setenv("OMP_WAIT_POLICY", given)
    share_processors()
    assert os.environ["OMP_WAIT_POLICY"] == kept


@pytest.mark.parametrize("entry", ["train", "evaluate"])
def test_entries_decide_before_torch_is_imported(entry: str) -> None:
    code = f"""
import os, sys
import output.parser
def look():
    print(os.environ.get("OMP_WAIT_POLICY"), "torch" in sys.modules)
    raise SystemExit
import {entry}
{entry}.one_line_errors = look
{entry}.main(["--version"])
"""
    environment = {key: value for key, value in os.environ.items() if key != "OMP_WAIT_POLICY"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment, cwd=ROOT
    )
    assert done.stdout.split() == ["PASSIVE", "False"]


ROOT = Path(__file__).parents[2]
