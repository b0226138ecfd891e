"""Float32 means float32, and threads are as many as there are processors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from modules import arithmetic
from modules.arithmetic import settle_arithmetic


@pytest.fixture(autouse=True)
def unsettled() -> Iterator[None]:
    """Allow what is to be settled, and leave all as it was."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, cudnn.allow_tf32
    threads = torch.get_num_threads()
    matmul.allow_tf32 = cudnn.allow_tf32 = True
    yield
    matmul.allow_tf32, cudnn.allow_tf32 = before
    torch.set_num_threads(threads)


def test_nothing_is_rounded_on_a_gpu() -> None:
    settle_arithmetic()
    assert not torch.backends.cuda.matmul.allow_tf32
    assert not torch.backends.cudnn.allow_tf32
    assert torch.backends.cuda.matmul.fp32_precision == "ieee"
    # Reads the switches, and raises where others contradict them.
    with torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False):
        assert torch.get_float32_matmul_precision() == "highest"


@pytest.mark.parametrize(("processors", "threads"), [(1, 1), (2, 2), (64, 3)])
def test_threads_are_no_more_than_processors(processors: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arithmetic, "count_processors", lambda: processors)
    torch.set_num_threads(3)
    settle_arithmetic()
    assert torch.get_num_threads() == threads
