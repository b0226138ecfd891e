"""Facts about a network: its size, and its accuracy on the task that it was trained for."""

from pathlib import Path

import torchvision

from headstart.modules.networks.build import build, choose_model
from headstart.modules.networks.spec import NetworkSpec

# Key in the metadata of a file of weights: the share of held-out samples of its own task that it classifies correctly.
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
    """Return the accuracy of a network on the task that its weights were trained for, where it is known.

    Args:
        spec: The network.

    Returns:
        From 0 to 1. It is torchvision's value for the weights, on the first data set that it lists, or
        `held_out_accuracy` in the metadata of a `.safetensors` file. None where there is neither.

    Raises:
        UserError: The library has no such model.
    """
    if isinstance(spec.weights, Path):
        return _accuracy_of_file(spec.weights) if spec.weights.suffix == ".safetensors" else None
    if spec.library != "torchvision" or spec.weights is None:
        return None
    weights = torchvision.models.get_model_weights(str(choose_model(spec)))[str(spec.weights)]
    measured = weights.meta.get("_metrics", {}).values()
    return next((accuracies["acc@1"] / 100 for accuracies in measured if "acc@1" in accuracies), None)


def _accuracy_of_file(path: Path) -> float | None:
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        accuracy = (file.metadata() or {}).get(HELD_OUT_ACCURACY)
    return None if accuracy is None else float(accuracy)
