"""What is known of a network besides what it computes: its size, and its accuracy on the task it was trained for."""

from __future__ import annotations

import math
from pathlib import Path

import torchvision

from headstart.modules.networks.build import build, choose_model
from headstart.modules.networks.spec import NetworkSpec

# Under which a file of weights says what part of the held-out samples of its own task it classifies rightly.
HELD_OUT_ACCURACY = "held_out_accuracy"


def count_parameters(spec: NetworkSpec) -> int:
    """Count the parameters of a network, its classifier included.

    Args:
        spec: The network, which is built.

    Raises:
        UserError: It cannot be built.
    """
    return sum(parameter.numel() for parameter in build(spec)[0].parameters())


def known_accuracy(spec: NetworkSpec) -> float | None:
    """Tell the accuracy of a network on the task that its weights were trained for, where these say so.

    Args:
        spec: The network.

    Returns:
        From 0 to 1: what torchvision says of its weights, on the data set that it names first, or what the metadata of
        a `.safetensors` file say under `held_out_accuracy`; None where neither does.

    Raises:
        UserError: The library has no such model.
    """
    if isinstance(spec.weights, Path):
        return _accuracy_of_file(spec.weights) if spec.weights.suffix == ".safetensors" else None
    if spec.library != "torchvision" or spec.weights is None:
        return None
    weights = torchvision.models.get_model_weights(str(choose_model(spec)))
    if spec.weights not in weights.__members__:
        return None
    measured = weights[spec.weights].meta.get("_metrics", {}).values()
    return next((found["acc@1"] / 100 for found in measured if "acc@1" in found), None)


def _accuracy_of_file(path: Path) -> float | None:
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        text = (file.metadata() or {}).get(HELD_OUT_ACCURACY, "")
    try:
        accuracy = float(text)
    except ValueError:
        return None
    return accuracy if math.isfinite(accuracy) else None
