"""Backbones, transfer methods and the comparison of methods."""

from modules.backbones import Backbone, BackboneSpec
from modules.comparison import Comparison
from modules.gradient_descent import GradientDescent
from modules.method import Method, Start, linear_logits
from modules.nearest_class_mean import NearestClassMean
from modules.preprocessing import Preprocessing

__all__ = [
    "Backbone",
    "BackboneSpec",
    "Comparison",
    "GradientDescent",
    "Method",
    "NearestClassMean",
    "Preprocessing",
    "Start",
    "linear_logits",
]
