"""Logistic regression refitted to convergence on all samples seen."""

from __future__ import annotations

import torch
from jsonargparse.typing import PositiveFloat, PositiveInt
from torch import Tensor
from torch.nn import functional

from modules.method import Method, Start, linear_logits
from modules.methods.samples_seen import SamplesSeen

CONJUGATE_STEPS = 200
# How far conjugate gradients shrink the residual of a Newton step.
FORCING = 0.3
HALVINGS = 20
SUFFICIENT_DECREASE = 1e-4
# Relative error of the objective in float32.
ROUNDING = 1e-6
# Cosine of two vectors of float32 under which their product is rounding error.
ORTHOGONAL = 1e-6


class LogisticRegression(Method):
    """L2-regularised multinomial logistic regression, refitted after every batch on all samples seen.

    It minimises `|W|^2 / 2 + c * sum of cross-entropies` with an unpenalised intercept over the classes seen, the
    convention of scikit-learn's `LogisticRegression(C=c)` (F. Pedregosa et al., "Scikit-learn: Machine Learning
    in Python", Journal of Machine Learning Research, 2011), which for two target classes penalises the one vector
    `w_1 - w_0`. A class without a sample is never predicted.

    The solver is Newton's method with conjugate gradients for the Newton step (Jorge Nocedal, Stephen J. Wright,
    "Numerical Optimization", 2006, algorithm 7.1) and a backtracking line search, warm-started from the fit
    before. Weights are combinations of samples, `W = X'A`, so the solver moves coefficients (A and, in row 0,
    the intercept) but measures gradients in weight space. That takes only products with the Gram matrix XX',
    which is kept while fewer samples than features are seen; afterwards products go through X. Each ordering
    has its own step lengths and stops by itself.

    Args:
        c: Inverse strength of the penalty.
        tolerance: An ordering has converged when the Euclidean norm of its gradient, divided by `c` and by the
            number of samples seen, is at most this.
        newton_steps: The most Newton steps per batch.
    """

    independent_of_limit = True

    weight: Tensor
    coefficients: Tensor
    gram: Tensor

    def __init__(
        self, c: PositiveFloat = 1.0, tolerance: PositiveFloat = 1e-5, newton_steps: PositiveInt = 100
    ) -> None:
        super().__init__()
        self.c = c
        self.tolerance = tolerance
        self.newton_steps = newton_steps

    def begin(self, start: Start) -> None:
        """Start without any sample."""
        super().begin(start)
        orderings, rows = start.orderings, min(start.max_samples, start.features)
        self.seen = SamplesSeen(orderings, start.max_samples, start.features)
        self.register_buffer("gram", torch.empty(orderings, rows, rows), persistent=False)
        self.register_buffer("weight", torch.zeros(orderings, start.features, start.classes))
        coefficients = torch.zeros(orderings, start.max_samples + 1, start.classes)
        self.register_buffer("coefficients", coefficients, persistent=False)
        # Two weight vectors +-w/2 have half the squared norm of the one vector w that scikit-learn penalises.
        self.penalty: float = (2 if start.classes == 2 else 1) / self.c

    @torch.no_grad()
    def adapt(self, inputs: Tensor, labels: Tensor) -> None:
        """Refit on all samples seen."""
        features = self.features(inputs)
        self.seen.append(features, labels)
        end = self.seen.count
        if end <= self.gram.shape[1]:
            products = features @ self.seen.features.mT
            self.gram[:, end - labels.shape[1] : end, :end] = products
            self.gram[:, :end, end - labels.shape[1] : end] = products.mT
        self._fit()
        self.weight = self.seen.features.mT @ self.coefficients[:, 1 : end + 1]

    def forward(self, inputs: Tensor) -> Tensor:
        """Give the logits of the fit."""
        one_hot = functional.one_hot(self.seen.labels, self.start.classes)
        bias = self.coefficients[:, 0].masked_fill(one_hot.sum(1) == 0, -torch.inf)
        return linear_logits(self.features(inputs), self.weight, bias)

    def _fit(self) -> None:
        """Move the coefficients to where the gradients of all orderings are within the tolerance."""
        targets = functional.one_hot(self.seen.labels, self.start.classes).to(self.gram.dtype)
        excluded = torch.where(targets.sum(1, keepdim=True) == 0, -torch.inf, 0.0)
        point = self.coefficients[:, : self.seen.count + 1]
        image = self._to_scores(point)
        moving = gained = torch.ones_like(point[:, :1, :1], dtype=torch.bool)
        before = torch.full_like(point[:, :1, :1], torch.inf)
        for _ in range(self.newton_steps):
            probabilities = (image[:, 1:] + image[:, :1] + excluded).softmax(-1)
            errors = probabilities - targets
            gradient = torch.cat([errors.sum(1, keepdim=True), self.penalty * point[:, 1:] + errors], 1)
            size = _dot(gradient, self._to_scores(gradient))
            # At the rounding error neither the objective nor the gradient gets any smaller.
            moving = moving & (gained | (size < before / 4))
            active = moving & (size > (self.tolerance * self.seen.count) ** 2)
            if not active.any():
                return
            step, step_image = self._newton_step(gradient, probabilities, active)
            slope = _dot(gradient, step_image)
            moving, before = moving & (slope != 0), size
            old = self._objective(point, image, targets, excluded)
            length = active.to(point.dtype)
            for _ in range(HALVINGS):
                new = self._objective(point + length * step, image + length * step_image, targets, excluded)
                # Near the minimum the objective's rounding error hides the decrease.
                too_long = new > old + SUFFICIENT_DECREASE * length * slope + ROUNDING * old
                if not too_long.any():
                    break
                length = torch.where(too_long, length / 2, length)
            gained = old - new > ROUNDING * old
            point += length * step
            image += length * step_image

    def _to_scores(self, coefficients: Tensor) -> Tensor:
        """Turn coefficients into scores `XX'A` without the intercept, which stays in row 0."""
        count = self.seen.count
        if count <= self.gram.shape[1]:
            # A few rows times a matrix take a quarter of the time of the matrix times a few columns.
            scores = (coefficients[:, 1:].mT @ self.gram[:, :count, :count]).mT
        else:
            scores = self.seen.features @ (self.seen.features.mT @ coefficients[:, 1:])
        return torch.cat([coefficients[:, :1], scores], 1)

    def _objective(self, point: Tensor, image: Tensor, targets: Tensor, excluded: Tensor) -> Tensor:
        """Give the objective over `c`, `[orderings, 1, 1]`."""
        scores = image[:, 1:] + image[:, :1]
        losses = (scores + excluded).logsumexp(-1) - (scores * targets).sum(-1)
        return losses.sum(1)[:, None, None] + 0.5 * self.penalty * _dot(point[:, 1:], image[:, 1:])

    def _newton_step(self, gradient: Tensor, probabilities: Tensor, active: Tensor) -> tuple[Tensor, Tensor]:
        """Solve for the Newton step by conjugate gradients; give it and its scores."""
        residual, residual_image = -gradient, -self._to_scores(gradient)
        direction, direction_image = residual, residual_image
        step, step_image = torch.zeros_like(gradient), torch.zeros_like(gradient)
        squared = _dot(residual, residual_image)
        target = FORCING**2 * squared
        running = active
        for _ in range(CONJUGATE_STEPS):
            running = running & (squared > target)
            if not running.any():
                break
            rise = direction_image[:, 1:] + direction_image[:, :1]
            curved = probabilities * (rise - (probabilities * rise).sum(-1, keepdim=True))
            product = torch.cat([curved.sum(1, keepdim=True), self.penalty * direction[:, 1:] + curved], 1)
            product_image = self._to_scores(product)
            curvature = _dot(direction, product_image)
            # Samples that come again leave directions that move no score, along which a step has no length.
            size = (_dot(direction, direction) * _dot(product_image, product_image)).sqrt()
            running = running & (curvature > ORTHOGONAL * size)
            length = torch.where(running, squared / curvature, 0.0)
            step = step + length * direction
            step_image = step_image + length * direction_image
            residual = residual - length * product
            residual_image = residual_image - length * product_image
            previous, squared = squared, _dot(residual, residual_image)
            ratio = torch.where(running, squared / previous, 0.0)
            direction = residual + ratio * direction
            direction_image = residual_image + ratio * direction_image
        return step, step_image


def _dot(left: Tensor, right: Tensor) -> Tensor:
    """Sum the products of each ordering, `[orderings, 1, 1]`."""
    return (left * right).sum((1, 2), keepdim=True)
