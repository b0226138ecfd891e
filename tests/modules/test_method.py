"""The start that all methods share."""

from itertools import product

import pytest
import torch
from torch import Tensor, nn

from headstart.modules.method import MethodStart, linear_logits, sample_head
from headstart.modules.methods.gradient_descent import GradientDescent


@pytest.mark.parametrize(("orderings", "samples", "width", "classes"), [(1, 1, 1, 2), (6, 7, 5, 2)])
def test_linear_logits_as_in_a_loop(orderings: int, samples: int, width: int, classes: int) -> None:
    generator = torch.Generator().manual_seed(samples)
    weight = torch.randn(orderings, width, classes, generator=generator)
    bias = torch.randn(orderings, classes, generator=generator)
    every = torch.randn(orderings, samples, width, generator=generator)
    for features in (every, every[0]):
        logits = linear_logits(features, weight, bias)
        assert logits.shape == (orderings, samples, classes)
        for k, i, c in product(range(orderings), range(samples), range(classes)):
            row = features[k, i] if features.dim() == 3 else features[i]
            expected = sum(float(row[j]) * float(weight[k, j, c]) for j in range(width)) + float(bias[k, c])
            assert logits[k, i, c].item() == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("features", [1, 16, 1280])
def test_head_is_drawn_as_in_torch(features: int) -> None:
    weight, bias = sample_head(features, 500, seed=0, ordering=0)
    assert weight.shape == (features, 500)
    assert bias.shape == (500,)
    bound = features**-0.5
    for values in (weight, bias):
        assert values.abs().max() <= bound
        assert values.abs().max() > 0.95 * bound
        assert values.std().item() == pytest.approx(bound / 3**0.5, rel=0.1)


def test_head_is_drawn_by_seed_and_ordering_alone() -> None:
    torch.manual_seed(5)
    first = sample_head(8, 3, seed=1, ordering=0)
    torch.manual_seed(6)
    again = sample_head(8, 3, seed=1, ordering=0)
    assert torch.equal(first[0], again[0])
    assert torch.equal(first[1], again[1])
    for other in (sample_head(8, 3, seed=2, ordering=0), sample_head(8, 3, seed=1, ordering=1)):
        assert not torch.equal(first[0], other[0])


class Colours(nn.Module):
    """A backbone: the mean of every colour."""

    def forward(self, photos: Tensor) -> Tensor:
        assert photos.dim() == 4
        return photos.float().mean((2, 3))


@pytest.mark.parametrize("leading", [(5,), (2, 5)])
def test_features_of_photos(leading: tuple[int, ...]) -> None:
    method = GradientDescent()
    method.begin(MethodStart(3, 2, range(leading[0]), max_samples=9, seed=0, backbone=Colours()))
    photos = torch.randint(256, (*leading, 3, 4, 6), dtype=torch.uint8)
    torch.testing.assert_close(method.features(photos), photos.float().mean((-2, -1)))
