"""Lack of memory is reported in one line; other errors are not changed."""

import pytest
import torch

from headstart.modules.memory_errors import explain_memory_errors
from headstart.output.errors import UserError


def test_lack_of_memory_is_explained_and_other_errors_pass() -> None:
    gpu = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a\nand so on")
    allocation = RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")
    for error, amount in ((gpu, r" \(20.00 GiB more are needed\)"), (MemoryError(), ""), (allocation, "")):
        message = f"^a batch does not fit into memory{amount}; take fewer$"
        with pytest.raises(UserError, match=message), explain_memory_errors("a batch", "take fewer"):
            raise error
    for other in (RuntimeError("shape mismatch"), ValueError("out of memory"), KeyboardInterrupt()):
        with pytest.raises(type(other)) as caught, explain_memory_errors("it", "take fewer"):
            raise other
        assert caught.value is other
