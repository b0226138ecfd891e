"""The methods of the suite by the names of their classes; reading the catalogue imports none of them."""

from dataclasses import dataclass
from typing import Literal

Inputs = Literal["features", "photos"]


@dataclass(frozen=True)
class ShippedMethod:
    """One method of the suite.

    Attributes:
        name: Its name in tables, that of its class with underscores: `gaussian_discriminant_analysis`.
        title: What it does, in one line.
        inputs: What it can be fed: the features of a frozen backbone, photos for a backbone of its own.
        needs_source_head: Whether it learns from the backbone's classifier of source classes.
    """

    name: str
    title: str
    inputs: tuple[Inputs, ...] = ("features", "photos")
    needs_source_head: bool = False

    @property
    def module(self) -> str:
        """The module that defines its class."""
        return f"headstart.modules.methods.{self.name}"


METHODS = {
    "GradientDescent": ShippedMethod("gradient_descent", "gradient descent, the baseline"),
    "NearestClassMean": ShippedMethod("nearest_class_mean", "nearest class mean"),
    "ShrunkenClassMean": ShippedMethod("shrunken_class_mean", "nearest class mean, means shrunk to their common mean"),
    "StreamingLDA": ShippedMethod("streaming_lda", "streaming linear discriminant analysis"),
    "GaussianDiscriminantAnalysis": ShippedMethod(
        "gaussian_discriminant_analysis", "Gaussian discriminant analysis, precision by empirical Bayes"
    ),
    "RecursiveLeastSquares": ShippedMethod("recursive_least_squares", "ridge regression, updated per batch"),
    "RandomProjection": ShippedMethod("random_projection", "ridge regression on random features, updated per batch"),
    "KernelRidge": ShippedMethod("kernel_ridge", "kernel ridge regression, refitted on all samples seen"),
    "LogisticRegression": ShippedMethod("logistic_regression", "logistic regression, refitted on all samples seen"),
    "ScikitLearnClassifier": ShippedMethod(
        "scikit_learn_classifier",
        "a classifier with scikit-learn's interface, TabICL by default, refitted on all samples seen",
    ),
    "CosineClassifier": ShippedMethod("cosine_classifier", "cosine classifier with imprinted weights"),
    "Replay": ShippedMethod("replay", "gradient descent with replay"),
    "SemanticClassMean": ShippedMethod(
        "semantic_class_mean", "nearest class mean among source classes", needs_source_head=True
    ),
    "LearnedSemanticPrior": ShippedMethod(
        "learned_semantic_prior",
        "semantic prior and linear discriminant analysis, weighted by evidence",
        needs_source_head=True,
    ),
    "LinearProbeThenFineTune": ShippedMethod(
        "linear_probe_then_fine_tune", "linear probing, then fine-tuning", ("photos",)
    ),
    "HeadOnly": ShippedMethod("head_only", "the head alone, on photos", ("photos",)),
    "GradualUnfreezing": ShippedMethod(
        "gradual_unfreezing", "fine-tuning from the last stage to the first", ("photos",)
    ),
    "BiasOnly": ShippedMethod("bias_only", "fine-tuning of the biases", ("photos",)),
    "NormalizationOnly": ShippedMethod("normalization_only", "fine-tuning of the normalisation layers", ("photos",)),
    "L2SP": ShippedMethod("l2_sp", "fine-tuning pulled back to the pre-trained weights", ("photos",)),
    "LoRA": ShippedMethod("lora", "fine-tuning by changes of low rank", ("photos",)),
    "SideTuning": ShippedMethod(
        "side_tuning", "discriminant analysis on the frozen network, and a fine-tuned one beside it", ("photos",)
    ),
}
