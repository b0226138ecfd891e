"""Every metric gives the same for arrays, for tensors, and computed by PyTorch."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from headstart.metrics import arrays
from headstart.metrics.arrays import in_place, to_float64
from headstart.metrics.transferability.baselines import num_classes
from headstart.metrics.transferability.etran import etran_terms
from headstart.metrics.transferability.feature_statistics import FeatureStatistics
from headstart.metrics.transferability.gbc import gbc
from headstart.metrics.transferability.h_score import h_score
from headstart.metrics.transferability.knn import knn_accuracy
from headstart.metrics.transferability.leep import leep, nce
from headstart.metrics.transferability.linear_probe import linear_probe_accuracy
from headstart.metrics.transferability.log_me import log_me
from headstart.metrics.transferability.n_leep import n_leep
from headstart.metrics.transferability.ncti import ncti_terms
from headstart.metrics.transferability.pactran import pactran
from headstart.metrics.transferability.parc import parc
from headstart.metrics.transferability.sfda import sfda
from headstart.metrics.transferability.trans_rate import trans_rate

ROOT = Path(__file__).parents[2]
METRICS: dict[str, Callable[[Any, Any], float]] = {
    "h_score": h_score,
    "h_score with shrinkage": lambda x, y: h_score(x, y, shrinkage=True),
    "log_me": log_me,
    "gbc": gbc,
    "gbc of diagonal covariances": lambda x, y: gbc(x, y, covariance="diagonal", pca=None),
    "n_leep": n_leep,
    "trans_rate": trans_rate,
    "knn_accuracy": knn_accuracy,
    "parc": parc,
    "parc of some samples": lambda x, y: parc(x, y, probes=15),
    "released parc of components": lambda x, y: parc(x, y, variant="released", components=3),
    "sfda": sfda,
    "etran": lambda x, y: sum(etran_terms(x, y)),
    "published etran": lambda x, y: sum(etran_terms(x, y, variant="published")),
    "ncti": lambda x, y: sum(ncti_terms(x, y)),
    "pactran": pactran,
    "published pactran": lambda x, y: pactran(x, y, variant="published"),
    "linear_probe_accuracy": linear_probe_accuracy,
    "leep": lambda x, y: leep(abs(x) / abs(x).sum(1)[:, None], y),
    "nce": lambda x, y: nce(x.argmax(1), y),
    "num_classes": lambda x, y: num_classes(y),
}


def sample(samples: int, features: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    generator = np.random.default_rng(0)
    labels = generator.permutation(np.arange(samples) % 3)
    centres = 0.5 * generator.standard_normal((3, features))
    return (generator.standard_normal((samples, features)) + centres[labels] + 1).astype(np.float32), labels


@pytest.mark.parametrize("shape", [(90, 7), (20, 30)])
@pytest.mark.parametrize("name", METRICS)
def test_tensors_give_what_arrays_give(name: str, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    x, labels = sample(*shape)
    expected = METRICS[name](x, labels)
    tensors = torch.from_numpy(x), torch.from_numpy(labels)
    assert METRICS[name](*tensors) == pytest.approx(expected, rel=1e-6)
    monkeypatch.setattr(arrays, "stays_on_device", lambda tensor: True)
    if name != "num_classes" and name != "nce":
        assert isinstance(to_float64("features", tensors[0]), torch.Tensor)
    value = METRICS[name](*tensors)
    assert type(value) is float
    assert value == pytest.approx(expected, rel=1e-6)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_gives_what_the_cpu_gives() -> None:
    x, labels = sample(90, 7)
    for name, metric in METRICS.items():
        value = metric(torch.from_numpy(x).cuda(), torch.from_numpy(labels).cuda())
        assert value == pytest.approx(metric(x, labels), rel=1e-5), name


@pytest.mark.parametrize("shape", [(60, 5), (8, 20)])
def test_tensors_with_a_large_mean_give_what_arrays_give(
    shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    x, labels = sample(*shape)
    far = x.astype(np.float64) + 1e5
    expected = log_me(far, labels)
    monkeypatch.setattr(arrays, "stays_on_device", lambda tensor: True)
    assert log_me(torch.from_numpy(far), torch.from_numpy(labels)) == pytest.approx(expected, rel=1e-7)


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


def test_tensors_that_are_not_finite_are_refused_on_their_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "stays_on_device", lambda tensor: True)
    x = torch.zeros(4, 2)
    x[2, 1] = torch.nan
    with pytest.raises(ValueError, match="row 2"):
        FeatureStatistics(x, torch.zeros(4, dtype=torch.long))


def test_metrics_import_no_torch() -> None:
    program = "import sys\nfrom headstart.metrics.transferability import catalogue\nassert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)
