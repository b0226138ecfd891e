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
    "ShrunkenClassMean": ShippedMethod(
        "nearest class mean, means shrunk to their common mean", "modules.methods.shrunken_class_mean"
    ),
    "StreamingLDA": ShippedMethod("streaming linear discriminant analysis", "modules.methods.streaming_lda"),
    "GaussianDiscriminantAnalysis": ShippedMethod(
        "Gaussian discriminant analysis, precision by empirical Bayes", "modules.methods.gaussian_discriminant_analysis"
    ),
    "RecursiveLeastSquares": ShippedMethod(
        "ridge regression, updated per batch", "modules.methods.recursive_least_squares"
    ),
    "RandomProjection": ShippedMethod(
        "ridge regression on random features, updated per batch", "modules.methods.random_projection"
    ),
    "KernelRidge": ShippedMethod(
        "kernel ridge regression, refitted on all samples seen", "modules.methods.kernel_ridge"
    ),
    "LogisticRegression": ShippedMethod(
        "logistic regression, refitted on all samples seen", "modules.methods.logistic_regression"
    ),
    "ScikitLearnClassifier": ShippedMethod(
        "a classifier with scikit-learn's interface, TabICL by default, refitted on all samples seen",
        "modules.methods.scikit_learn_classifier",
    ),
    "CosineClassifier": ShippedMethod("cosine classifier with imprinted weights", "modules.methods.cosine_classifier"),
    "Replay": ShippedMethod("gradient descent with replay", "modules.methods.replay"),
    "SemanticClassMean": ShippedMethod(
        "nearest class mean among source classes", "modules.methods.semantic_class_mean"
    ),
    "LearnedSemanticPrior": ShippedMethod(
        "semantic prior and linear discriminant analysis, weighted by evidence",
        "modules.methods.learned_semantic_prior",
    ),
    "LinearProbeThenFineTune": ShippedMethod(
        "linear probing, then fine-tuning", "modules.methods.linear_probe_then_fine_tune", ("photos",)
    ),
    "HeadOnly": ShippedMethod("the head alone, on photos", "modules.methods.head_only", ("photos",)),
    "GradualUnfreezing": ShippedMethod(
        "fine-tuning from the last stage to the first", "modules.methods.gradual_unfreezing", ("photos",)
    ),
    "BiasOnly": ShippedMethod("fine-tuning of the biases", "modules.methods.bias_only", ("photos",)),
    "NormalizationOnly": ShippedMethod(
        "fine-tuning of the normalisation layers", "modules.methods.normalization_only", ("photos",)
    ),
    "L2SP": ShippedMethod("fine-tuning pulled back to the pre-trained weights", "modules.methods.l2_sp", ("photos",)),
    "LoRA": ShippedMethod("fine-tuning by changes of low rank", "modules.methods.lora", ("photos",)),
    "SideTuning": ShippedMethod(
        "discriminant analysis on the frozen network, and a fine-tuned one beside it",
        "modules.methods.side_tuning",
        ("photos",),
    ),
    "OwnLightningModule": ShippedMethod("a LightningModule of your own", "modules.methods.own_lightning_module"),
}
