"""Backbones, transfer methods and the comparison of methods."""

from modules.backbones import Backbone, BackboneSpec
from modules.comparison import Comparison
from modules.cosine_classifier import CosineClassifier
from modules.gradient_descent import GradientDescent
from modules.linear_probe_then_fine_tune import LinearProbeThenFineTune
from modules.logistic_regression import LogisticRegression
from modules.method import Method, Start, linear_logits
from modules.nearest_class_mean import NearestClassMean
from modules.preprocessing import Preprocessing
from modules.recursive_least_squares import RecursiveLeastSquares
from modules.replay import Replay
from modules.samples_seen import SamplesSeen
from modules.semantic_class_mean import SemanticClassMean
from modules.streaming_lda import StreamingLDA

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
