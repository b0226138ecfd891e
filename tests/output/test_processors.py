"""CPUs and memory are counted as far as this process may use them."""

import os
from pathlib import Path

import pytest

from headstart.output import processors
from headstart.output.errors import UserError
from headstart.output.processors import count_memory, count_processors, require_memory


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")
def test_affinity_limits_processors() -> None:
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert count_processors() == 1
    finally:
        os.sched_setaffinity(0, allowed)


QUOTAS = {"200000 100000": 2, "150000 100000": 2, "10000 100000": 1, "9900000 100000": 64, "max 100000": 64, "": 64}


@pytest.mark.parametrize(("quota", "count"), QUOTAS.items())
def test_quota_of_a_container_limits_processors(
    quota: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpu.max").write_text(quota)
    monkeypatch.setattr(processors, "QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(64)), raising=False)
    assert count_processors() == count


def test_limit_of_a_container_limits_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processors, "MEMORY_LIMIT", tmp_path / "memory.max")
    machine = count_memory()
    for limit, expected in {"12345": 12345, "max": machine, str(10**18): machine}.items():
        (tmp_path / "memory.max").write_text(limit)
        assert count_memory() == expected
    with pytest.raises(UserError, match=r"^orderings: 9 orderings need .* GB of memory.*; give fewer"):
        require_memory("orderings", "9 orderings", 10**18)
