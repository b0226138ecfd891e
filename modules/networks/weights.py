"""Loading of weights into networks, and the split of a network into body and head."""

import hashlib
import warnings
from collections.abc import Callable
from contextlib import suppress
from itertools import chain
from pathlib import Path, PurePosixPath
from pickle import UnpicklingError
from textwrap import shorten
from typing import TypeVar

import pooch
import torch
from filelock import FileLock
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook

from headstart.modules.networks.spec import WeightsAddress
from headstart.output.errors import UserError, reason_of

# Characters that a message quotes of torch's list of keys and shapes that do not fit.
QUOTED = 400
# Attribute of timm's networks that names their classifier.
TIMM_CONFIG = "default_cfg"

Head = TypeVar("Head", nn.Linear, nn.Conv2d)
State = dict[str, Tensor]


def fetch_weights(address: WeightsAddress) -> Path:
    """Download a file of weights into the folder of torchvision's weights, unless it is there and undamaged.

    Args:
        address: Its address.

    Returns:
        The file.

    Raises:
        UserError: It cannot be fetched, or has another SHA-256.
    """
    name = f"{address.sha256[:8]}-{PurePosixPath(address.url).name}"
    path = Path(torch.hub.get_dir()) / "checkpoints" / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{path}.lock"):
            pooch.retrieve(address.url, f"sha256:{address.sha256}", path.name, path.parent)
    # A file with another digest raises a ValueError.
    except (OSError, ValueError) as error:
        raise UserError(
            f"weights: {address} cannot be fetched ({reason_of(error)}); check the connection and the SHA-256, or name "
            "a local copy"
        ) from error
    return path


def load_weights(
    network: nn.Module,
    path: Path,
    rebuild: Callable[[int], nn.Module] | None = None,
    convert: Callable[[nn.Module, State], State] | None = None,
) -> nn.Module:
    """Load a file of weights into a network, whose classifier takes the file's number of classes.

    Args:
        network: The network.
        path: The file, as for `read_state_dict`; a network with a classifier needs a file with one.
        rebuild: Creates the network with another number of classes; None where its classifier has to fit as it is.
        convert: Converts the state dict of the network's publishers, where names or sizes are not the network's own.

    Returns:
        The network, or a rebuilt one, with the file's weights.

    Raises:
        UserError: The file cannot be read or does not fit.
    """
    state = read_state_dict(path)
    if convert is not None and not _fits(network, state):
        # Errors of many unrelated kinds; loading then names what does not fit.
        with suppress(Exception):
            state = convert(network, state)
    if rebuild is not None:
        shapes = {f"{name}.weight": head.weight.shape for name, head in heads(network).items()}
        for name, shape in shapes.items():
            stored = state[name].shape if name in state else shape
            if stored[1:] == shape[1:] and stored != shape:
                network = rebuild(stored[0])
    try:
        network.load_state_dict(state)
    except RuntimeError as error:
        raise UserError(f"weights: {str(path)!r} does not fit the model: {shorten(str(error), QUOTED)}") from error
    return network


def _fits(network: nn.Module, state: State) -> bool:
    """Return whether a state dict has the names and sizes of a network, but for its classifier."""
    expected = network.state_dict()
    classifiers = tuple(f"{name}." for name in heads(network))
    resized = (name for name in expected.keys() & state.keys() if expected[name].shape != state[name].shape)
    return expected.keys() == state.keys() and all(name.startswith(classifiers) for name in resized)


def read_state_dict(path: Path) -> State:
    """Read a state dict from a file, without running code from it.

    Args:
        path: A `.safetensors` file, or a `.pth` file with a state dict or with one under `state_dict`.

    Returns:
        Tensors by name.

    Raises:
        UserError: The file is missing, cannot be read or holds no state dict.
    """
    if not path.is_file():
        raise UserError(f"weights: there is no file {str(path)!r}")
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(path)
        with warnings.catch_warnings(action="ignore"):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # damaged files raise errors of many unrelated kinds
        # torch's own message advises to run code from the file.
        is_pickle = isinstance(error, UnpicklingError)
        reason = "it is damaged, or holds more than tensors; save a state_dict()" if is_pickle else reason_of(error)
        raise UserError(f"weights: {str(path)!r} cannot be read: {reason}") from error
    state = content.get("state_dict", content) if isinstance(content, dict) else content
    if not isinstance(state, dict) or not all(isinstance(value, Tensor) for value in state.values()):
        raise UserError(f"weights: {str(path)!r} holds no state dict (tensors by name)")
    return state


def linear_heads(network: nn.Module, run: Callable[[], object]) -> dict[str, nn.Linear]:
    """Return the linear classifiers of a network by module path.

    Args:
        network: A classifier of timm, which names its own, or another: the linear layer that runs last.
        run: Runs the network once.

    Returns:
        One, two or more for networks that average classifiers, none for networks without a classifier.
    """
    if hasattr(network, TIMM_CONFIG):
        return _pick_heads(network, nn.Linear)
    linear = {module: name for name, module in network.named_modules() if isinstance(module, nn.Linear)}
    ran = list[nn.Module]()
    with register_module_forward_hook(lambda module, *_: ran.append(module)):
        run()
    last = [layer for layer in ran if isinstance(layer, nn.Linear) and layer in linear][-1:]
    return {linear[layer]: layer for layer in last}


def heads(network: nn.Module) -> dict[str, nn.Linear] | dict[str, nn.Conv2d]:
    """Return the linear classifiers of a library's network by module path, or the convolution that classifies instead.

    In networks of torchvision, the last layer is the classifier.
    """
    return _pick_heads(network, nn.Linear) or _pick_heads(network, nn.Conv2d)


def _pick_heads(network: nn.Module, kind: type[Head]) -> dict[str, Head]:
    """Return the layers of a type that timm names as the classifier; in other networks the last one of the type."""
    layers = {name: module for name, module in network.named_modules() if isinstance(module, kind)}
    names = getattr(network, TIMM_CONFIG, {}).get("classifier", list(layers)[-1:]) or ()
    return {name: layers[name] for name in ([names] if isinstance(names, str) else names) if name in layers}


def weights_digest(network: nn.Module) -> str:
    """Return a digest of every parameter and buffer of a network, by name.

    Args:
        network: The network, on any device and in any memory format.

    Returns:
        SHA-256 in hexadecimal.
    """
    digest = hashlib.sha256()
    tensors = chain(network.named_parameters(remove_duplicate=False), network.named_buffers(remove_duplicate=False))
    for name, value in sorted(tensors, key=lambda pair: pair[0]):
        digest.update(f"\0{name}\0{value.dtype}\0{tuple(value.shape)}\0".encode())
        digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
