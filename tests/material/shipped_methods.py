"""The methods of the suite, with settings that suit small streams."""

from collections.abc import Callable
from typing import Any

from headstart import modules
from headstart.modules.method import Method
from headstart.modules.methods.catalogue import METHODS

Make = Callable[[], Method]
SETTINGS: dict[str, dict[str, Any]] = {
    "LinearProbeThenFineTune": {"probe_samples": 7},  # both phases are seen
    "LoRA": {"rank": 1},
    "LogisticRegression": {"tolerance": 1e-6},
    "RandomProjection": {"projections": 24},
    "Replay": {"replay_size": 4},  # fewer than are in memory
    "ScikitLearnClassifier": {"classifier": "sklearn.linear_model.LogisticRegression"},
}
# The methods by their inputs.
CASES = [(name, inputs) for name, method in METHODS.items() for inputs in method.inputs]
ON_FEATURES = [name for name, inputs in CASES if inputs == "features"]


def maker(name: str) -> Make:
    """Return what makes a method, by its name in the catalogue."""
    return lambda: getattr(modules, name)(**SETTINGS.get(name, {}))
