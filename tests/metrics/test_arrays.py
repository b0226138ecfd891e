"""Every metric gives the same for arrays and for tensors."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from headstart.metrics import (
    etran_terms,
    gbc,
    h_score,
    leep,
    nce,
    num_classes,
    pactran,
    parc,
)
from headstart.metrics.arrays import in_place, to_float64
from headstart.tests.material.metric_formulas import OF_FEATURES, labelled

ROOT = Path(__file__).parents[2]
METRICS: dict[str, Callable[[Any, Any], Any]] = {
    **OF_FEATURES,
    "h_score with shrinkage": lambda x, y: h_score(x, y, shrinkage=True),
    "gbc of diagonal covariances": lambda x, y: gbc(x, y, covariance="diagonal", pca=None),
    "parc of some samples": lambda x, y: parc(x, y, probes=15),
    "released parc of components": lambda x, y: parc(x, y, variant="released", components=3),
    "published etran": lambda x, y: etran_terms(x, y, variant="published"),
    "published pactran": lambda x, y: pactran(x, y, variant="published"),
    "leep": lambda x, y: leep(abs(x) / abs(x).sum(1)[:, None], y),
    "nce": lambda x, y: nce(x.argmax(1), y),
    "num_classes": lambda x, y: num_classes(y),
}


def sample(samples: int, features: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    x, labels = labelled(samples, features, apart=0.5)
    return x.astype(np.float32), labels


def test_tensors_give_what_arrays_give() -> None:
    x, labels = sample(90, 7)
    tensors = torch.from_numpy(x), torch.from_numpy(labels)
    for name, metric in METRICS.items():
        value = metric(*tensors)
        assert {type(item) for item in np.atleast_1d(value).tolist()} == {float}, name
        # Probabilities that torch has divided differ by its rounding.
        assert value == pytest.approx(metric(x, labels), rel=1e-6), name
        if torch.cuda.is_available():
            assert metric(*(tensor.cuda() for tensor in tensors)) == pytest.approx(value, rel=1e-5), name


def test_other_precisions_and_gradients() -> None:
    x, labels = sample(90, 7)
    half = torch.from_numpy(x).bfloat16().requires_grad_()
    exact = half.detach().double().numpy()
    assert h_score(half, labels.tolist()) == h_score(exact, labels)
    assert h_score(x.astype(np.float16), labels) == h_score(x.astype(np.float16).astype(np.float64), labels)
    with pytest.raises(ValueError, match="features must be real"):
        h_score(torch.zeros(90, 7, dtype=torch.complex64), labels)


def test_numbers_stay_where_they_lie(tmp_path: Path) -> None:
    mapped = np.memmap(tmp_path / "rows", dtype=np.float16, mode="w+", shape=(4, 2))
    assert np.shares_memory(in_place("x", mapped), mapped)
    tensor = torch.zeros(4, 2, requires_grad=True)
    assert in_place("x", tensor).ctypes.data == tensor.data_ptr()
    assert in_place("x", tensor.detach().bfloat16()).dtype == np.float32
    double = np.zeros((4, 2))
    assert to_float64("x", double) is double


def test_metrics_import_no_torch() -> None:
    program = (
        "import sys\nfrom headstart import metrics\nfrom headstart.metrics import linear_cka\n"
        "from headstart.metrics.similarity import catalogue\nfrom headstart.metrics.transferability import catalogue\n"
        "assert not {'torch', 'torchmetrics'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
