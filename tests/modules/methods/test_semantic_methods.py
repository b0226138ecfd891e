"""Methods that learn among the source classes against sums over samples and classes, and near or far from them."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from headstart.modules.method import MethodStart
from headstart.modules.methods.learned_semantic_prior import LIKELIHOOD_SCALES, SEMANTIC_SCALES, LearnedSemanticPrior
from headstart.modules.methods.semantic_class_mean import SemanticClassMean
from headstart.output.errors import UserError
from headstart.tests.material.streams import feed, make_start, random_samples

CLASSES, PRIOR, TEMPERATURE, SHRINKAGE = 3, 2.0, 2.0, 0.5


def place(sample: Tensor, head: tuple[Tensor, Tensor], temperature: float) -> Tensor:
    vectors, biases = head
    centred = vectors - vectors.mean(0)
    logits = [(float(v @ sample) + float(b)) / temperature for v, b in zip(vectors, biases, strict=True)]
    probabilities = torch.tensor(logits).exp()
    mixed = torch.stack([p * v for p, v in zip(probabilities, centred, strict=True)]).sum(0)
    return mixed.div(mixed.norm())


def sum_placed(samples: Tensor, head: tuple[Tensor, Tensor]) -> Tensor:
    return torch.stack([place(sample, head, 2.0) for sample in samples]).sum(0)


def semantic_scores(placed: Tensor, labels: Tensor, points: Tensor) -> Tensor:
    sums = [placed[labels == c].sum(0) for c in range(CLASSES)]
    means = torch.stack([total / (int((labels == c).sum()) + PRIOR) for c, total in enumerate(sums)])
    return points @ means.mT - 0.5 * means.square().sum(-1)


def chances(scores: Tensor, scale: float, seen: int) -> NDArray[np.float64]:
    softmax: NDArray[np.float64] = (scale * scores.double()).softmax(-1).numpy()
    return (seen * softmax + 1) / (seen + CLASSES)


def lda_scores(features: Tensor, labels: Tensor, points: Tensor) -> Tensor:
    """Compute log-likelihoods up to a common term by the shrunk precision; -inf of a class without a sample."""
    features, points = (functional.normalize(x.double(), dim=-1) for x in (features, points))
    means = torch.stack([features[labels == c].mean(0) for c in range(CLASSES)])
    residuals, samples = features - means[labels], len(features)
    shrunk = (residuals.mT @ residuals + SHRINKAGE * torch.eye(features.shape[-1])) / (SHRINKAGE + samples)
    scores: Tensor = points @ shrunk.inverse() @ means.mT - 0.5 * ((means @ shrunk.inverse()) * means).sum(-1)
    return scores.nan_to_num(nan=-torch.inf)


def predict(seen: tuple[Tensor, Tensor, Tensor], new: Tensor, new_placed: Tensor) -> list[NDArray[np.float64]]:
    """Adapt every expert on the features, indices and labels seen, and return its probabilities for new samples."""
    features, placed, labels = seen
    semantic, plain = semantic_scores(placed, labels, new_placed), torch.zeros(len(new), CLASSES)
    if len(labels):
        plain = lda_scores(features, labels, new)
    scaled = [(semantic, scale) for scale in SEMANTIC_SCALES] + [(plain, scale) for scale in LIKELIHOOD_SCALES]
    return [chances(scores, scale, len(labels)) for scores, scale in scaled]


def test_equals_the_formula_sample_by_sample() -> None:
    inputs, labels = random_samples(orderings=2, samples=12, features=10, classes=CLASSES)
    start, validation = make_start(inputs, CLASSES), torch.rand(15, 10)
    assert start.source_head is not None
    assert start.source_bias is not None
    head = start.source_head, start.source_bias
    logits = feed(LearnedSemanticPrior(TEMPERATURE, PRIOR, SHRINKAGE), inputs, labels, classes=CLASSES)(validation)
    points = torch.stack([place(sample, head, TEMPERATURE) for sample in validation])
    for ordering, (features, truth) in enumerate(zip(inputs, labels, strict=True)):
        placed = torch.stack([place(sample, head, TEMPERATURE) for sample in features])
        weights = np.full(8, 1 / 8)
        for n in range(12):
            expected = predict((features[:n], placed[:n], truth[:n]), features[n : n + 1], placed[n : n + 1])
            weights = weights * np.array([each[0, truth[n]] for each in expected])
            weights = (1 - 1 / (n + 2)) * weights / weights.sum() + 1 / ((n + 2) * len(weights))
        learnt = predict((features, placed, truth), validation, points)
        mixed = sum(weight * each for weight, each in zip(weights, learnt, strict=True))
        np.testing.assert_allclose(logits[ordering].exp().numpy(), mixed, rtol=1e-3, atol=1e-4)


def test_source_head_is_required() -> None:
    with pytest.raises(UserError, match="LearnedSemanticPrior needs the backbone's own classifier"):
        LearnedSemanticPrior().begin(MethodStart(4, 2, range(1), max_samples=9, seed=0))


def test_predicts_the_nearest_shrunk_mean() -> None:
    inputs, labels = random_samples(orderings=2, samples=15, features=10, classes=3)
    generator = torch.Generator().manual_seed(1)
    head = torch.randn(20, 10, generator=generator), torch.randn(20, generator=generator)
    validation = torch.rand(50, 10)
    method = feed(SemanticClassMean(2.0, prior=3.0, evidence=4.0), inputs, labels, batch=4, classes=3)
    predicted = method(validation).argmax(-1)
    for ordering in range(2):
        of_class = [inputs[ordering, labels[ordering] == c] for c in range(3)]
        share = min(map(len, of_class)) / (min(map(len, of_class)) + 4.0)
        semantic = torch.stack([sum_placed(m, head) / (len(m) + 3.0) for m in of_class])
        plain = torch.stack([functional.normalize(m, dim=-1).mean(0) for m in of_class])
        points = torch.stack([place(sample, head, 2.0) for sample in validation])
        distances = (1 - share) * torch.cdist(points, semantic).square()
        distances += share * torch.cdist(functional.normalize(validation, dim=-1), plain).square()
        assert torch.equal(predicted[ordering], distances.argmin(-1))


def test_one_class_suffices_to_predict_another() -> None:
    sample = torch.randn(1, 1, 16)
    method = feed(SemanticClassMean(temperature=100.0), sample, torch.ones(1, 1, dtype=torch.int64))
    assert method(torch.cat([sample[0], -sample[0]])).argmax(-1).tolist() == [[1, 0]]


def test_new_samples_count_although_validation_samples_are_placed_once() -> None:
    inputs, labels = torch.randn(1, 6, 8), torch.tensor([[0, 1, 0, 1, 0, 1]])
    validation = torch.randn(30, 8)
    method = feed(SemanticClassMean(), inputs, labels)
    method(validation)
    method.adapt(-inputs, labels)
    torch.testing.assert_close(method(validation), method(validation.clone()))
