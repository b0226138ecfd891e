"""Backbones, transfer methods and the comparison of methods.

What is exported is imported when it is asked for: what names a network needs no torch, and what trains one does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from modules.methods.catalogue import METHODS

if TYPE_CHECKING:
    from modules.comparison import Comparison as Comparison
    from modules.method import Method as Method
    from modules.method import Start as Start
    from modules.method import linear_logits as linear_logits
    from modules.methods.bias_only import BiasOnly as BiasOnly
    from modules.methods.cosine_classifier import CosineClassifier as CosineClassifier
    from modules.methods.fine_tuning import FineTuning as FineTuning
    from modules.methods.gaussian_discriminant_analysis import (
        GaussianDiscriminantAnalysis as GaussianDiscriminantAnalysis,
    )
    from modules.methods.gradient_descent import GradientDescent as GradientDescent
    from modules.methods.gradual_unfreezing import GradualUnfreezing as GradualUnfreezing
    from modules.methods.head_only import HeadOnly as HeadOnly
    from modules.methods.kernel_ridge import KernelRidge as KernelRidge
    from modules.methods.l2_sp import L2SP as L2SP
    from modules.methods.learned_semantic_prior import LearnedSemanticPrior as LearnedSemanticPrior
    from modules.methods.linear_probe_then_fine_tune import LinearProbeThenFineTune as LinearProbeThenFineTune
    from modules.methods.logistic_regression import LogisticRegression as LogisticRegression
    from modules.methods.lora import LoRA as LoRA
    from modules.methods.nearest_class_mean import NearestClassMean as NearestClassMean
    from modules.methods.normalization_only import NormalizationOnly as NormalizationOnly
    from modules.methods.own_lightning_module import OwnLightningModule as OwnLightningModule
    from modules.methods.random_projection import RandomProjection as RandomProjection
    from modules.methods.recursive_least_squares import RecursiveLeastSquares as RecursiveLeastSquares
    from modules.methods.replay import Replay as Replay
    from modules.methods.samples_seen import SamplesSeen as SamplesSeen
    from modules.methods.scikit_learn_classifier import ScikitLearnClassifier as ScikitLearnClassifier
    from modules.methods.semantic_class_mean import SemanticClassMean as SemanticClassMean
    from modules.methods.shrunken_class_mean import ShrunkenClassMean as ShrunkenClassMean
    from modules.methods.side_tuning import SideTuning as SideTuning
    from modules.methods.streaming_lda import StreamingLDA as StreamingLDA
    from modules.networks.backbone import Backbone as Backbone
    from modules.networks.backbone import BackboneSpec as BackboneSpec
    from modules.networks.preprocessing import Preprocessing as Preprocessing

_HOMES = {
    **{name: method.module for name, method in METHODS.items()},
    "Backbone": "modules.networks.backbone",
    "BackboneSpec": "modules.networks.backbone",
    "Comparison": "modules.comparison",
    "FineTuning": "modules.methods.fine_tuning",
    "Method": "modules.method",
    "Preprocessing": "modules.networks.preprocessing",
    "SamplesSeen": "modules.methods.samples_seen",
    "Start": "modules.method",
    "linear_logits": "modules.method",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever is exported under the name
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
