"""The examples that a paper's figures show, by name: which targets, metrics and measures are compared.

Agostinelli, Pándy, Uijlings, Mensink and Ferrari, How stable are transferability metrics evaluations?, ECCV 2022,
figures 1 (section 4.2), 3 (section 5) and 5 (section 6), with the names of the tables that were released with it. The
paper does not name the sources of pools, the second measure of figure 1, nor the examples of figures 3c and 5c.
Section 6 states that its figures are by Pearson, but the example of figure 5a holds by weighted Kendall alone. The
target of figure 5b is not named; CIFAR100 is the one that fits its description.
"""

from __future__ import annotations

from typing import Any, Literal

Example = Literal["figure1", "figure3a", "figure3b_coco", "figure3b_pascal_voc", "figure5a", "figure5b"]
# Parts of the figures: two targets, two measures, pools alone, and the graph of experiments.
Part = Literal["target", "measure", "pool", "graph"]

_BOTH = ["weighted_kendall", "pearson"]
# By name: the part that shows it, and the options of the figures that it stands for.
EXAMPLES: dict[Example, tuple[Part, dict[str, Any]]] = {
    "figure1": ("graph", {"targets": ["ade", "city"], "measure": "weighted_kendall"}),
    "figure3a": ("target", {"targets": ["ade", "city"], "metrics": ["logme", "hscore"], "measure": "weighted_kendall"}),
    "figure3b_coco": ("measure", {"target": "coco", "metrics": ["hscore", "nleep"], "measures": _BOTH}),
    "figure3b_pascal_voc": ("measure", {"target": "pvoc", "metrics": ["leep", "gbc"], "measures": _BOTH}),
    "figure5a": (
        "target",
        {"targets": ["cifar10", "caltech_birds2011"], "metrics": ["gbc", "logme"], "measure": "weighted_kendall"},
    ),
    "figure5b": ("measure", {"target": "cifar100", "metrics": ["logme", "gbc"], "measures": _BOTH}),
}
