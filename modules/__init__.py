"""Backbones, transfer methods and the comparison of methods.

Exported names are imported when they are first used: naming a network needs no torch, training one does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headstart.output.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from headstart.modules.comparison import Comparison as Comparison
    from headstart.modules.method import Method as Method
    from headstart.modules.method import MethodStart as MethodStart
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
    from headstart.modules.networks.backbone_spec import BackboneSpec as BackboneSpec
    from headstart.modules.networks.preprocessing import Preprocessing as Preprocessing

EXPORTS, __getattr__ = lazy_exports(__name__)
__all__ = list(EXPORTS)
