"""RSA against SciPy's distances and correlations; invariances and mistakes are tested with the catalogue."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.spatial.distance import pdist

from headstart.metrics.similarity import cka
from headstart.metrics.similarity.rsa import pairwise_rsa_pearson, pairwise_rsa_spearman
from headstart.tests.material.embeddings import embeddings

Array = NDArray[np.float64]


@pytest.mark.parametrize(("n", "block_bytes"), [(3, 1), (9, 1), (60, 2**12), (60, 2**28)])
def test_equal_to_scipy(n: int, block_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cka, "BLOCK_BYTES", block_bytes)
    many = embeddings(n, 5, 40, 12)
    dissimilarities = np.stack([pdist(x, "correlation") for x in many])
    np.testing.assert_allclose(pairwise_rsa_pearson(many)[0], np.corrcoef(dissimilarities), atol=1e-11)
    expected = stats.spearmanr(dissimilarities, axis=1).statistic
    np.testing.assert_allclose(pairwise_rsa_spearman(many)[0], expected, atol=1e-12)


def test_rows_that_are_nearly_parallel_keep_their_digits() -> None:
    # All correlations lie within 1e-7 of 1, where the products' own sums would leave few digits of their spread.
    many = embeddings(30, 20, 30, offset=1e4)
    plain = [(x - x.mean(1, keepdims=True)).astype(np.longdouble) for x in many]
    units = [x / np.sqrt((x * x).sum(1, keepdims=True)) for x in plain]
    upper = np.triu_indices(30, 1)
    exact = [1 - (u @ u.T)[upper] for u in units]
    centred = [each - each.mean() for each in exact]
    lengths = [np.sqrt((each * each).sum()) for each in centred]
    expected = float(centred[0] @ centred[1] / lengths[0] / lengths[1])
    assert max(float(each.max()) for each in exact) < 1e-6
    assert pairwise_rsa_pearson(many)[0][0, 1] == pytest.approx(expected, abs=1e-7)


def test_ties_share_their_mean_rank_although_they_are_rounded_apart() -> None:
    # Rows of two columns correlate by 1 or -1 alone: all dissimilarities are ties of two kinds.
    x, y = (np.random.default_rng(seed).standard_normal((20, 2)) for seed in (0, 1))
    signs = [np.sign(each[:, 0] - each[:, 1]) for each in (x, y)]
    upper = np.triu_indices(20, 1)
    expected = stats.spearmanr(*(1 - np.outer(sign, sign)[upper] for sign in signs)).statistic
    assert pairwise_rsa_spearman([x, y])[0][0, 1] == pytest.approx(expected, abs=1e-12)


def test_a_monotone_change_of_dissimilarities_is_seen_by_pearson_alone() -> None:
    # Rows on a circle, turned by angles that grow: the same order of dissimilarities, at other distances.
    plane = np.linalg.qr((np.eye(6) - 1 / 6)[:, :2])[0].T
    angles = 2.0 ** -np.arange(6)
    near, far = (np.stack([np.cos(t * angles), np.sin(t * angles)], 1) @ plane for t in (0.2, 3.0))
    assert pairwise_rsa_spearman([near, far])[0][0, 1] == pytest.approx(1, abs=1e-12)
    assert pairwise_rsa_pearson([near, far])[0][0, 1] < 0.999


@pytest.mark.parametrize("compute", [pairwise_rsa_pearson, pairwise_rsa_spearman])
def test_undefined_values_are_named(compute: Callable[..., tuple[Array, None]]) -> None:
    x, y = embeddings(6, 5, 8)
    y[4] = 3.7
    with pytest.raises(ValueError, match=r"^embeddings\[1\]: RSA is undefined where a row is equal .* as row 4 is"):
        compute([x, y])
    with pytest.raises(ValueError, match=r"^embeddings\[1\]: RSA is undefined where all pairs of rows are equally"):
        compute([x, np.eye(6)])
    x[2] *= 1e170
    with pytest.raises(ValueError, match=r"^embeddings\[0\]: .* squares exceed float64"):
        compute([x])
