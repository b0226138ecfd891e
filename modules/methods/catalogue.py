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

    @property
    def name(self) -> str:
        """What tables call it, the name of its class with underscores: `gaussian_discriminant_analysis`."""
        return self.module.rpartition(".")[2]


METHODS = {
    "GradientDescent": ShippedMethod("gradient descent, the baseline", "headstart.modules.methods.gradient_descent"),
    "NearestClassMean": ShippedMethod("nearest class mean", "headstart.modules.methods.nearest_class_mean"),
    "ShrunkenClassMean": ShippedMethod(
        "nearest class mean, means shrunk to their common mean", "headstart.modules.methods.shrunken_class_mean"
    ),
    "StreamingLDA": ShippedMethod("streaming linear discriminant analysis", "headstart.modules.methods.streaming_lda"),
    "GaussianDiscriminantAnalysis": ShippedMethod(
        "Gaussian discriminant analysis, precision by empirical Bayes",
        "headstart.modules.methods.gaussian_discriminant_analysis",
    ),
    "RecursiveLeastSquares": ShippedMethod(
        "ridge regression, updated per batch", "headstart.modules.methods.recursive_least_squares"
    ),
    "RandomProjection": ShippedMethod(
        "ridge regression on random features, updated per batch", "headstart.modules.methods.random_projection"
    ),
    "KernelRidge": ShippedMethod(
        "kernel ridge regression, refitted on all samples seen", "headstart.modules.methods.kernel_ridge"
    ),
    "LogisticRegression": ShippedMethod(
        "logistic regression, refitted on all samples seen", "headstart.modules.methods.logistic_regression"
    ),
    "ScikitLearnClassifier": ShippedMethod(
        "a classifier with scikit-learn's interface, TabICL by default, refitted on all samples seen",
        "headstart.modules.methods.scikit_learn_classifier",
    ),
    "CosineClassifier": ShippedMethod(
        "cosine classifier with imprinted weights", "headstart.modules.methods.cosine_classifier"
    ),
    "Replay": ShippedMethod("gradient descent with replay", "headstart.modules.methods.replay"),
    "SemanticClassMean": ShippedMethod(
        "nearest class mean among source classes", "headstart.modules.methods.semantic_class_mean"
    ),
    "LearnedSemanticPrior": ShippedMethod(
        "semantic prior and linear discriminant analysis, weighted by evidence",
        "headstart.modules.methods.learned_semantic_prior",
    ),
    "LinearProbeThenFineTune": ShippedMethod(
        "linear probing, then fine-tuning", "headstart.modules.methods.linear_probe_then_fine_tune", ("photos",)
    ),
    "HeadOnly": ShippedMethod("the head alone, on photos", "headstart.modules.methods.head_only", ("photos",)),
    "GradualUnfreezing": ShippedMethod(
        "fine-tuning from the last stage to the first", "headstart.modules.methods.gradual_unfreezing", ("photos",)
    ),
    "BiasOnly": ShippedMethod("fine-tuning of the biases", "headstart.modules.methods.bias_only", ("photos",)),
    "NormalizationOnly": ShippedMethod(
        "fine-tuning of the normalisation layers", "headstart.modules.methods.normalization_only", ("photos",)
    ),
    "L2SP": ShippedMethod(
        "fine-tuning pulled back to the pre-trained weights", "headstart.modules.methods.l2_sp", ("photos",)
    ),
    "LoRA": ShippedMethod("fine-tuning by changes of low rank", "headstart.modules.methods.lora", ("photos",)),
    "SideTuning": ShippedMethod(
        "discriminant analysis on the frozen network, and a fine-tuned one beside it",
        "headstart.modules.methods.side_tuning",
        ("photos",),
    ),
    "OwnLightningModule": ShippedMethod(
        "a LightningModule of your own", "headstart.modules.methods.own_lightning_module"
    ),
}
