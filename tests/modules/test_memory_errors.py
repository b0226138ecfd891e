"""Lack of memory is reported in one line; other errors are not changed."""

import pytest
import torch

from headstart.modules.memory_errors import explain_memory_errors
from headstart.output.errors import UserError


def test_memory_of_a_gpu() -> None:
    reason = "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 79.19 GiB\nand so on"
    message = r"^a batch of 4 does not fit into memory \(20.00 GiB more are needed\); take fewer$"
    with pytest.raises(UserError, match=message), explain_memory_errors("a batch of 4", "take fewer"):
        raise torch.OutOfMemoryError(reason)


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")]
)
def test_other_words_for_it(error: Exception) -> None:
    with (
        pytest.raises(UserError, match=r"^it does not fit into memory; take fewer$"),
        explain_memory_errors("it", "take fewer"),
    ):
        raise error


@pytest.mark.parametrize("error", [RuntimeError("shape mismatch"), ValueError("out of memory"), KeyboardInterrupt()])
def test_other_errors_pass(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, explain_memory_errors("it", "take fewer"):
        raise error
    assert caught.value is error
