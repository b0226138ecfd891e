"""Processors are counted by what the process may use."""

import os
from pathlib import Path

import pytest

from headstart.output import processors
from headstart.output.processors import count_processors


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
