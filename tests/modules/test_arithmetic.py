"""Float32 means float32, and threads are as many as there are processors."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from headstart.modules import arithmetic
from headstart.modules.arithmetic import set_float32_arithmetic

BACKENDS: Any = torch.backends
# The settings of float32 products, and values that a user may have set.
UNSETTLED: dict[str, Callable[[], object]] = {
    "high": lambda: torch.set_float32_matmul_precision("high"),
    "older switch of products": lambda: setattr(BACKENDS.cuda.matmul, "allow_tf32", True),
    "older switch of convolutions": lambda: setattr(BACKENDS.cudnn, "allow_tf32", True),
    "all": lambda: setattr(BACKENDS, "fp32_precision", "tf32"),
    "products of the processor": lambda: setattr(BACKENDS.mkldnn.matmul, "fp32_precision", "bf16"),
    "all of the GPU": lambda: setattr(BACKENDS.cudnn, "fp32_precision", "tf32"),
    "convolutions of the GPU": lambda: setattr(BACKENDS.cudnn.conv, "fp32_precision", "tf32"),
}


@pytest.fixture(autouse=True)
def settled_afterwards() -> Iterator[None]:
    threads = torch.get_num_threads()
    yield
    set_float32_arithmetic()
    torch.set_num_threads(threads)


@pytest.mark.parametrize("unsettle", UNSETTLED.values(), ids=UNSETTLED)
def test_float32_is_float32_whatever_was_set_before(unsettle: Callable[[], object]) -> None:
    unsettle()
    set_float32_arithmetic()
    # All of these raise where newer and older switches contradict each other.
    assert torch.get_float32_matmul_precision() == "highest"
    assert not BACKENDS.cuda.matmul.allow_tf32
    with BACKENDS.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False):
        assert not BACKENDS.cudnn.allow_tf32
    operations = [
        BACKENDS.cuda.matmul,
        *(getattr(each, name) for each in (BACKENDS.cudnn, BACKENDS.mkldnn) for name in ("conv", "rnn")),
        BACKENDS.mkldnn.matmul,
    ]
    assert {operation.fp32_precision for operation in operations} <= {"none", "ieee"}
    left, right = torch.randn(2, 512, 512, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(left @ right, (left.double() @ right.double()).float(), rtol=0, atol=1e-3)


@pytest.mark.parametrize(("processors", "threads"), [(1, 1), (64, 3)])
def test_threads_are_no_more_than_processors(processors: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arithmetic, "count_processors", lambda: processors)
    torch.set_num_threads(3)
    set_float32_arithmetic()
    assert torch.get_num_threads() == threads
