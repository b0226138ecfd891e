"""Logistic regression refitted to convergence on all samples seen."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jsonargparse.typing import PositiveFloat, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from headstart.modules.method import Method, MethodStart, linear_logits
from headstart.modules.methods.samples_seen import SamplesSeen, with_room

CONJUGATE_STEPS = 200
# Factor by which conjugate gradients reduce the residual of a Newton step.
FORCING = 0.3
HALVINGS = 20
SUFFICIENT_DECREASE = 1e-4
# Relative error of the objective in float32.
ROUNDING = 1e-6
# The product of two vectors of float32 with a smaller cosine is rounding error.
ORTHOGONAL = 1e-6
# Tensors of a value per sample and class in memory during a fit.
TENSORS = 16


class LogisticRegression(Method):
    """L2-regularised multinomial logistic regression, refitted after every batch on all samples seen.

    It minimises `|W|^2 / 2 + c * sum of cross-entropies` with an unpenalised intercept over the classes seen. This is
    the convention of scikit-learn's `LogisticRegression(C=c)` (F. Pedregosa et al., "Scikit-learn: Machine Learning in
    Python", Journal of Machine Learning Research, 2011). For two target classes, it penalises the one vector `w_1 -
    w_0`. A class without a sample is never predicted.

    The solver (`NewtonFit`) optimises coefficients of the samples, warm-started from the previous fit. While fewer
    samples than features are seen, it multiplies by the stored Gram matrix XX'; later by X and X'. Orderings are fitted
    in groups, and X is gathered for a whole group.

    Args:
        c: Inverse strength of the penalty.
        tolerance: An ordering has converged when the Euclidean norm of its gradient is at most this, after division by
            `c` and by the number of samples seen.
        newton_steps: The most Newton steps per batch.
    """

    def __init__(
        self, c: PositiveFloat = 1.0, tolerance: PositiveFloat = 1e-5, newton_steps: PositiveInt = 100
    ) -> None:
        super().__init__()
        self.c = c
        self.tolerance = tolerance
        self.newton_steps = newton_steps

    def begin(self, start: MethodStart) -> None:
        """Start without any sample."""
        super().begin(start)
        self.seen = SamplesSeen(start)
        self.gram: Tensor = nn.Buffer(torch.empty(start.orderings, 0, 0), persistent=False)
        self.weight: Tensor = nn.Buffer(torch.zeros(start.orderings, start.features, start.classes))
        self.coefficients: Tensor = nn.Buffer(torch.zeros(start.orderings, 1, start.classes), persistent=False)
        # Two weight vectors +-w/2 have half the squared norm of the one vector w that scikit-learn penalises.
        self.penalty: float = (2 if start.classes == 2 else 1) / self.c

    @torch.no_grad()
    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        """Refit on all samples seen."""
        features = self.features(inputs)
        self.seen.append(features, labels, self.indices)
        count, limit = self.seen.count, self.start.max_samples
        self.coefficients = with_room(self.coefficients, [1], count + 1, limit + 1)
        if count <= self.start.features:
            self.gram = with_room(self.gram, [1, 2], count, min(limit, self.start.features))
        else:
            self.gram = self.gram.new_empty(len(labels), 0, 0)
        for group in self.seen.groups(TENSORS * self.start.classes):
            self._fit(group, features[group])

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits of the fit."""
        one_hot = functional.one_hot(self.seen.labels, self.start.classes)
        bias = self.coefficients[:, 0].masked_fill(one_hot.sum(1) == 0, -torch.inf)
        return linear_logits(self.features(inputs), self.weight, bias)

    def _fit(self, group: slice, new: Tensor) -> None:
        """Refit some orderings, of which the last samples are new, `[orderings of the group, batch, features]`."""
        count = self.seen.count
        samples = self.seen.gather(group)
        gram = self.gram[group, :count, :count]
        if gram.numel():
            products = new @ samples.mT
            gram[:, count - new.shape[1] :] = products
            gram[:, :, count - new.shape[1] :] = products.mT

        def multiply(coefficients: Tensor) -> Tensor:
            if gram.numel():
                # A few rows times a matrix need a quarter of the time of the matrix times a few columns.
                return (coefficients.mT @ gram).mT
            return samples @ (samples.mT @ coefficients)

        targets = functional.one_hot(self.seen.labels[group], self.start.classes).to(samples.dtype)
        excluded = torch.where(targets.sum(1, keepdim=True) == 0, -torch.inf, 0.0)
        point = self.coefficients[group, : count + 1]
        NewtonFit(multiply, targets, excluded, self.penalty, self.tolerance * count).improve(point, self.newton_steps)
        self.weight[group] = (point[:, 1:].mT @ samples).mT


@dataclass(frozen=True)
class NewtonFit:
    """Newton's method with conjugate gradients and a backtracking line search, on coefficients of samples.

    Source: Jorge Nocedal, Stephen J. Wright, "Numerical Optimization", 2006, algorithm 7.1. Weights are combinations of
    samples, `W = X'A`. The solver therefore optimises coefficients (A and, in row 0, the intercept) but measures
    gradients in weight space. That needs only products with XX'. Each ordering has its own step lengths and stops by
    itself: later steps do not change an ordering that has stopped.

    Attributes:
        multiply: Computes `XX'A` from `A`, `[orderings, samples, classes]`.
        targets: One-hot labels, `[orderings, samples, classes]`.
        excluded: -inf for a class without a sample in an ordering, else 0, `[orderings, 1, classes]`.
        penalty: Factor of `|W|^2 / 2`.
        tolerance: An ordering has converged when the Euclidean norm of its gradient is at most this.
    """

    multiply: Callable[[Tensor], Tensor]
    targets: Tensor
    excluded: Tensor
    penalty: float
    tolerance: float

    def improve(self, point: Tensor, steps: int) -> None:
        """Optimise coefficients until the gradients of all orderings are within the tolerance.

        Args:
            point: The coefficients, `[orderings, 1 + samples, classes]`, changed in place.
            steps: The most Newton steps.
        """
        image = self._to_scores(point)
        old = self._objective(point, image)
        moving = gained = torch.ones_like(point[:, :1, :1], dtype=torch.bool)
        before = torch.full_like(point[:, :1, :1], torch.inf)

        for _ in range(steps):
            probabilities = (image[:, 1:] + image[:, :1] + self.excluded).softmax(-1)
            errors = probabilities - self.targets
            gradient = torch.cat([errors.sum(1, keepdim=True), self.penalty * point[:, 1:] + errors], 1)
            gradient_image = self._to_scores(gradient)
            size = _dot(gradient, gradient_image)

            # At the rounding error neither the objective nor the gradient becomes smaller.
            moving = moving & (gained | (size < before / 4))
            active = moving & (size > self.tolerance**2)
            if not active.any():
                return

            step, step_image = self._newton_step(gradient, gradient_image, probabilities, active)
            slope = _dot(gradient, step_image)
            moving, before = moving & (slope != 0), size
            length, new = self._search(old, point, image, step, step_image, slope, active)
            gained, old = old - new > ROUNDING * old, new
            point += length * step
            image += length * step_image

    def _to_scores(self, coefficients: Tensor) -> Tensor:
        """Compute scores without the intercept, which stays in row 0, from coefficients."""
        return torch.cat([coefficients[:, :1], self.multiply(coefficients[:, 1:])], 1)

    def _search(
        self, old: Tensor, point: Tensor, image: Tensor, step: Tensor, step_image: Tensor, slope: Tensor, active: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the step length of every ordering, and the objective there; `old` is the one before."""

        def try_out(length: Tensor) -> tuple[Tensor, Tensor]:
            new = self._objective(point + length * step, image + length * step_image)
            # Near the minimum the objective's rounding error hides the decrease.
            return new, new > old + SUFFICIENT_DECREASE * length * slope + ROUNDING * old

        length = active.to(point.dtype)
        new, too_long = try_out(length)
        for _ in range(HALVINGS):
            if not too_long.any():
                break
            length = torch.where(too_long, length / 2, length)
            new, too_long = try_out(length)
        return length, new

    def _objective(self, point: Tensor, image: Tensor) -> Tensor:
        """Compute the objective divided by `c`, `[orderings, 1, 1]`."""
        scores = image[:, 1:] + image[:, :1]
        losses = (scores + self.excluded).logsumexp(-1) - (scores * self.targets).sum(-1)
        products = _dot(point[:, 1:], image[:, 1:])
        return losses.sum(-1)[..., None, None] + 0.5 * self.penalty * products

    def _newton_step(
        self, gradient: Tensor, gradient_image: Tensor, probabilities: Tensor, active: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Compute the Newton step by conjugate gradients, and its scores."""
        # Coefficients and their scores side by side, `[orderings, 2, 1 + samples, classes]`.
        residual = direction = -torch.stack([gradient, gradient_image], 1)
        step = torch.zeros_like(residual)
        squared = _dot(residual[:, 0], residual[:, 1])
        target = FORCING**2 * squared
        running, zero = active, squared.new_zeros(())
        for _ in range(CONJUGATE_STEPS):
            running = running & (squared > target)
            if not running.any():
                break

            rise = direction[:, 1, 1:] + direction[:, 1, :1]
            curved = probabilities * rise
            curved = curved - probabilities * curved.sum(-1, keepdim=True)
            intercept, others = curved.sum(1, keepdim=True), self.penalty * direction[:, 0, 1:] + curved
            product = torch.cat([intercept, others, intercept, self.multiply(others)], 1).unflatten(1, (2, -1))
            curvature = _dot(direction[:, 0], product[:, 1])

            # Repeated samples leave directions that change no score, along which a step has no length.
            lengths = torch.stack([direction[:, 0], product[:, 1]], 1).square().sum((-2, -1), keepdim=True)
            running = running & (curvature > ORTHOGONAL * lengths.prod(1).sqrt())
            length = torch.where(running, squared / curvature, zero)[:, None]
            step = step + length * direction
            residual = residual - length * product

            previous, squared = squared, _dot(residual[:, 0], residual[:, 1])
            direction = residual + torch.where(running, squared / previous, zero)[:, None] * direction
        return step[:, 0], step[:, 1]


def _dot(left: Tensor, right: Tensor) -> Tensor:
    """Sum the products of each ordering, `[orderings, 1, 1]`."""
    return (left * right).sum((-2, -1), keepdim=True)
