"""The methods that come with the suite, by the name of their class; to read it imports none of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Inputs = Literal["features", "photos"]


@dataclass(frozen=True)
class ShippedMethod:
    """One method of the suite.

    Attributes:
        title: What it does, in one line.
        module: The module that defines its class.
        inputs: What it can be fed: the features of a frozen backbone, photos for a backbone of its own.
    """

    title: str
    module: str
    inputs: tuple[Inputs, ...] = ("features", "photos")


METHODS = {
    "GradientDescent": ShippedMethod("gradient descent, the baseline", "modules.methods.gradient_descent"),
    "NearestClassMean": ShippedMethod("nearest class mean", "modules.methods.nearest_class_mean"),
    "StreamingLDA": ShippedMethod("streaming linear discriminant analysis", "modules.methods.streaming_lda"),
    "RecursiveLeastSquares": ShippedMethod(
        "ridge regression, updated per batch", "modules.methods.recursive_least_squares"
    ),
    "LogisticRegression": ShippedMethod(
        "logistic regression, refitted on all samples seen", "modules.methods.logistic_regression"
    ),
    "CosineClassifier": ShippedMethod("cosine classifier with imprinted weights", "modules.methods.cosine_classifier"),
    "Replay": ShippedMethod("gradient descent with replay", "modules.methods.replay", ("features",)),
    "SemanticClassMean": ShippedMethod(
        "nearest class mean among source classes", "modules.methods.semantic_class_mean"
    ),
    "LinearProbeThenFineTune": ShippedMethod(
        "linear probing, then fine-tuning", "modules.methods.linear_probe_then_fine_tune", ("photos",)
    ),
}
