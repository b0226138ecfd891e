"""Backbones, transfer methods and the comparison of methods.

What is exported is imported when it is asked for: what names a network needs no torch, and what trains one does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headstart.modules.methods.catalogue import METHODS

if TYPE_CHECKING:
    from headstart.modules.comparison import Comparison as Comparison
    from headstart.modules.method import Method as Method
    from headstart.modules.method import Start as Start
    from headstart.modules.method import linear_logits as linear_logits
    from headstart.modules.methods.bias_only import BiasOnly as BiasOnly
    from headstart.modules.methods.cosine_classifier import CosineClassifier as CosineClassifier
    from headstart.modules.methods.fine_tuning import FineTuning as FineTuning
    from headstart.modules.methods.gaussian_discriminant_analysis import (
        GaussianDiscriminantAnalysis as GaussianDiscriminantAnalysis,
    )
    from headstart.modules.methods.gradient_descent import GradientDescent as GradientDescent
    from headstart.modules.methods.gradual_unfreezing import GradualUnfreezing as GradualUnfreezing
    from headstart.modules.methods.head_only import HeadOnly as HeadOnly
    from headstart.modules.methods.kernel_ridge import KernelRidge as KernelRidge
    from headstart.modules.methods.l2_sp import L2SP as L2SP
    from headstart.modules.methods.learned_semantic_prior import LearnedSemanticPrior as LearnedSemanticPrior
    from headstart.modules.methods.linear_probe_then_fine_tune import LinearProbeThenFineTune as LinearProbeThenFineTune
    from headstart.modules.methods.logistic_regression import LogisticRegression as LogisticRegression
    from headstart.modules.methods.lora import LoRA as LoRA
    from headstart.modules.methods.nearest_class_mean import NearestClassMean as NearestClassMean
    from headstart.modules.methods.normalization_only import NormalizationOnly as NormalizationOnly
    from headstart.modules.methods.own_lightning_module import OwnLightningModule as OwnLightningModule
    from headstart.modules.methods.random_projection import RandomProjection as RandomProjection
    from headstart.modules.methods.recursive_least_squares import RecursiveLeastSquares as RecursiveLeastSquares
    from headstart.modules.methods.replay import Replay as Replay
    from headstart.modules.methods.samples_seen import SamplesSeen as SamplesSeen
    from headstart.modules.methods.scikit_learn_classifier import ScikitLearnClassifier as ScikitLearnClassifier
    from headstart.modules.methods.semantic_class_mean import SemanticClassMean as SemanticClassMean
    from headstart.modules.methods.shrunken_class_mean import ShrunkenClassMean as ShrunkenClassMean
    from headstart.modules.methods.side_tuning import SideTuning as SideTuning
    from headstart.modules.methods.streaming_lda import StreamingLDA as StreamingLDA
    from headstart.modules.networks.backbone import Backbone as Backbone
    from headstart.modules.networks.backbone import BackboneSpec as BackboneSpec
    from headstart.modules.networks.preprocessing import Preprocessing as Preprocessing

_HOMES = {
    **{name: method.module for name, method in METHODS.items()},
    "Backbone": "headstart.modules.networks.backbone",
    "BackboneSpec": "headstart.modules.networks.backbone",
    "Comparison": "headstart.modules.comparison",
    "FineTuning": "headstart.modules.methods.fine_tuning",
    "Method": "headstart.modules.method",
    "Preprocessing": "headstart.modules.networks.preprocessing",
    "SamplesSeen": "headstart.modules.methods.samples_seen",
    "Start": "headstart.modules.method",
    "linear_logits": "headstart.modules.method",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever is exported under the name
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
