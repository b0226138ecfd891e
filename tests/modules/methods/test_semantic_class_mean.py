"""Class means among the source classes against sums over samples and source classes."""

import torch
from torch import Tensor
from torch.nn import functional

from headstart.modules.methods.semantic_class_mean import SemanticClassMean
from headstart.tests.material.streams import feed, random_samples


def place(sample: Tensor, head: tuple[Tensor, Tensor], temperature: float) -> Tensor:
    vectors, biases = head
    centred = vectors - vectors.mean(0)
    logits = [(float(v @ sample) + float(b)) / temperature for v, b in zip(vectors, biases, strict=True)]
    probabilities = torch.tensor(logits).exp()
    mixed = torch.stack([p * v for p, v in zip(probabilities, centred, strict=True)]).sum(0)
    return mixed.div(mixed.norm())


def sum_placed(samples: Tensor, head: tuple[Tensor, Tensor]) -> Tensor:
    return torch.stack([place(sample, head, 2.0) for sample in samples]).sum(0)


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
