"""Backbones, transfer methods and the comparison of methods."""

from modules.comparison import Comparison
from modules.method import Method, Start, linear_logits
from modules.methods.cosine_classifier import CosineClassifier
from modules.methods.gradient_descent import GradientDescent
from modules.methods.linear_probe_then_fine_tune import LinearProbeThenFineTune
from modules.methods.logistic_regression import LogisticRegression
from modules.methods.nearest_class_mean import NearestClassMean
from modules.methods.recursive_least_squares import RecursiveLeastSquares
from modules.methods.replay import Replay
from modules.methods.samples_seen import SamplesSeen
from modules.methods.semantic_class_mean import SemanticClassMean
from modules.methods.streaming_lda import StreamingLDA
from modules.networks.backbone import Backbone, BackboneSpec
from modules.networks.preprocessing import Preprocessing

__all__ = [
    "Backbone",
    "BackboneSpec",
    "Comparison",
    "CosineClassifier",
    "GradientDescent",
    "LinearProbeThenFineTune",
    "LogisticRegression",
    "Method",
    "NearestClassMean",
    "Preprocessing",
    "RecursiveLeastSquares",
    "Replay",
    "SamplesSeen",
    "SemanticClassMean",
    "Start",
    "StreamingLDA",
    "linear_logits",
]
