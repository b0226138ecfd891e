"""Fitted methods as heads: tensors and a name, which a file can hold and another program can run."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from headstart.modules.method import Method
from headstart.modules.methods.gaussian_discriminant_analysis import GaussianDiscriminantAnalysis
from headstart.modules.methods.kernel_ridge import KernelRidge
from headstart.modules.methods.logistic_regression import LogisticRegression
from headstart.modules.methods.random_projection import RandomProjection
from headstart.modules.methods.recursive_least_squares import RecursiveLeastSquares
from headstart.modules.methods.semantic_class_mean import SemanticClassMean
from headstart.modules.methods.shrunken_class_mean import ShrunkenClassMean


def _near_samples(features: Tensor, samples: Tensor) -> Tensor:
    """Return the Gaussian kernel of the features with samples, whose last column is the kernel's variance."""
    variance = samples[0, -1]
    return ((functional.normalize(features, dim=-1) @ samples[:, :-1].mT - 1) / variance).exp()


def _source_classes(features: Tensor, source: Tensor) -> Tensor:
    """Return vectors among source classes and unit features; the source's last columns are biases and temperature."""
    vectors, biases, temperature = source[:, :-2], source[:, -2], source[0, -1]
    shares = ((features @ vectors.mT + biases) / temperature).softmax(-1)
    return torch.cat([functional.normalize(shares @ vectors, dim=-1), functional.normalize(features, dim=-1)], -1)


# What a head multiplies its weights by: a function of the features and of one matrix.
REPRESENTATIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "features": lambda features, _: features,
    "unit features": lambda features, _: functional.normalize(features, dim=-1),
    "random projection": lambda features, matrix: functional.normalize((features @ matrix).relu(), dim=-1),
    "Gaussian kernel": _near_samples,
    "source classes": _source_classes,
}


class Head(nn.Module):
    """A classifier on features: a fixed representation of them, weights and biases.

    Args:
        representation: Name in `REPRESENTATIONS`.
        matrix: Matrix that computes the representation, `[..., ...]`; empty if it needs none.
        weight: `[represented, classes]`.
        bias: `[classes]`.
        offset: What is subtracted from the features first, `[features]` or a single 0.
    """

    offset: Tensor
    matrix: Tensor
    weight: Tensor
    bias: Tensor

    def __init__(
        self, representation: str, matrix: Tensor, weight: Tensor, bias: Tensor, offset: Tensor | None = None
    ) -> None:
        super().__init__()
        self.representation = representation
        offset = torch.zeros(1) if offset is None else offset
        for name, value in (("matrix", matrix), ("weight", weight), ("bias", bias), ("offset", offset)):
            self.register_buffer(name, value.detach().float().contiguous())

    def forward(self, features: Tensor) -> Tensor:
        """Return logits `[samples, classes]` of features `[samples, features]`."""
        represented = REPRESENTATIONS[self.representation](features - self.offset, self.matrix)
        return represented @ self.weight + self.bias


@torch.no_grad()
def head_of(method: Method, offset: Tensor | None = None) -> Head:
    """Return the head that predicts as a fitted method does.

    Args:
        method: The method, fitted in one ordering.
        offset: What was subtracted from the backbone's features before; the head will subtract it.
    """
    head = _take_apart(method)
    head.offset = head.offset if offset is None else offset
    return head


def _take_apart(method: Method) -> Head:
    nothing = torch.empty(0)
    if isinstance(method, KernelRidge):
        samples = method.pairs.gather(slice(0, 1))[0]
        matrix = torch.cat([samples, method.variance[0].expand(len(samples), 1)], 1)
        return Head("Gaussian kernel", matrix, method.coefficients[0], torch.zeros(method.start.classes))
    if isinstance(method, RandomProjection):
        return Head("random projection", method.projection, method.weight[0], torch.zeros(method.start.classes))
    if isinstance(method, SemanticClassMean):
        source = method.source_classes
        temperature = torch.full_like(source.biases, source.temperature)
        matrix = torch.cat([source.vectors, source.biases[:, None], temperature[:, None]], 1)
        return Head("source classes", matrix, *_read_linear(method, method.represented, 2 * method.start.features))
    if isinstance(method, LogisticRegression):
        return Head("features", nothing, method.weight[0], method.coefficients[0, 0])
    assert isinstance(method, RecursiveLeastSquares | GaussianDiscriminantAnalysis | ShrunkenClassMean)
    return Head("unit features", nothing, *_read_linear(method, None, method.start.features))


def _read_linear(method: Method, represented: Any, width: int) -> tuple[Tensor, Tensor]:  # noqa: ANN401 - a mapping
    """Read weights and biases off the logits of a method that is linear in vectors of unit length.

    Args:
        method: The method.
        represented: Where the method keeps the vectors of inputs; None where these are the scaled inputs.
        width: Length of the vectors.
    """
    axes = torch.cat([torch.eye(width), -torch.eye(width)])
    if represented is not None:
        represented[axes] = axes
    ahead, behind = method(axes)[0].chunk(2)
    return (ahead - behind) / 2, ((ahead + behind) / 2).mean(0)
