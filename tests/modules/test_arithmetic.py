"""Float32 means float32, threads are as many as processors, and a large common offset changes no prediction."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from headstart.modules import arithmetic
from headstart.modules.arithmetic import LARGE_OFFSET, common_offset, seen_rows, set_float32_arithmetic

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


def test_threads_are_no_more_than_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    for processors, threads in ((1, 1), (64, 3)):
        monkeypatch.setattr(arithmetic, "count_processors", lambda processors=processors: processors)
        torch.set_num_threads(3)
        set_float32_arithmetic()
        assert torch.get_num_threads() == threads


WIDTH, CLASSES = 64, 3


def draw(count: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Draw features and classes that are far apart."""
    labels = np.arange(count) % CLASSES
    centres = np.random.default_rng(0).normal(size=(CLASSES, WIDTH))
    return np.random.default_rng(seed).normal(size=(count, WIDTH)) + 2 * centres[labels], labels


def test_every_method_predicts_as_without_the_offset() -> None:
    neighbors = pytest.importorskip("sklearn.neighbors", reason="the extra sklearn is not installed")
    from headstart.estimators import CLASSIFIERS, HeadstartClassifier

    (samples, labels), (points, expected) = draw(120, 1), draw(300, 2)
    column = np.eye(WIDTH)[3]
    for offset in (1e3, 1e4, 1e5, 1e5 * column):
        x, z = (np.asarray(values + offset, np.float32) for values in (samples, points))
        assert neighbors.NearestCentroid().fit(x, labels).score(z, expected) == 1
        for method in sorted(CLASSIFIERS.keys() - {"scikit_learn_classifier"}):
            assert HeadstartClassifier(method, batch_size=10).fit(x, labels).score(z, expected) > 0.9, (method, offset)


def test_what_is_an_offset() -> None:
    rows = torch.from_numpy(draw(120, 1)[0]).float()
    direction = torch.ones(WIDTH) / WIDTH**0.5 * (rows - rows.mean(0)).square().sum(1).mean().sqrt()
    centred = rows - rows.mean(0)
    assert common_offset(rows) is None
    assert common_offset(centred + 0.99 * LARGE_OFFSET * direction) is None
    offset = common_offset(centred + 1.01 * LARGE_OFFSET * direction)
    assert offset is not None
    torch.testing.assert_close(offset, 1.01 * LARGE_OFFSET * direction)
    # Equal features, a single one and such as are not finite stay as they are.
    for other in (torch.ones(4, 3), rows[:1] + 1e6, rows / 0):
        assert common_offset(other) is None
    assert [len(range(*seen_rows(count).indices(count))) for count in (1, 1024, 1025, 10**6)] == [1, 1024, 513, 1024]
