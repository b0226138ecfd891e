"""Building of a network by its spec within limits of its size, and facts about it: size, accuracy on its own task."""

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torchvision
from torch import nn
from torch.nn.modules.module import (
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)

from headstart.modules.networks.libraries import LIBRARIES
from headstart.modules.networks.pixel_classifier import PixelClassifier, is_pixel_classifier
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import (
    CLASSIFIER_LIBRARIES,
    CUSTOM,
    WEIGHT_FILES,
    NetworkSpec,
    WeightsAddress,
    import_code,
)
from headstart.modules.networks.weights import fetch_weights, load_weights, read_state_dict
from headstart.output.errors import UserError, reason_of

log = logging.getLogger(__name__)

# No network of the libraries is as large: the deepest have a few thousand modules, the largest 7 billion weights.
LARGEST_ARGUMENT = 1_000_000
MOST_MODULES = 50_000
MOST_PARAMETERS = 20_000_000_000
# Arguments with which the libraries' constructors load weights; some of them would unpickle a file.
WEIGHT_ARGUMENTS = ("pretrained", "weights", "checkpoint", "load_weights", "require_pretrained")
FILES = " or ".join(WEIGHT_FILES)
# Key in the metadata of a file of weights: the share of held-out samples of its own task that it classifies correctly.
HELD_OUT_ACCURACY = "held_out_accuracy"


def build(spec: NetworkSpec) -> tuple[nn.Module, Preprocessing]:
    """Build a network with its weights.

    A library's classifier takes the number of classes of the file that its weights are in.

    Args:
        spec: The network.

    Returns:
        The network in float32 and in evaluation mode; and the preparation of photos for it.

    Raises:
        UserError: A part of the spec is unknown or not allowed, cannot be downloaded or does not fit; or the
            preparation of photos is not known.
    """
    if isinstance(spec.weights, WeightsAddress):
        spec = replace(spec, weights=fetch_weights(spec.weights))
    if spec.pixels:
        network, preprocessing = _build_of_pixels(spec)
    else:
        with _seeded(spec):
            make = _build_custom if spec.library == CUSTOM else _build_from_library
            network, own = make(spec)
        known = spec.preprocessing or own
        if known is None:
            raise UserError(f"preprocessing: {spec.name} states no square centre crop; give resize and crop")
        preprocessing = known

    for key, value in network.state_dict().items() if spec.weights is not None else ():
        if value.is_floating_point() and not value.isfinite().all():
            raise UserError(f"weights: {str(spec.weights)!r} holds numbers that are not finite, in {key}; give others")
    return network.float().eval(), preprocessing


@contextmanager
def _seeded(spec: NetworkSpec) -> Iterator[None]:
    """Sample random weights within from the network's seed, and leave the generator of the processor as it is."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(spec.seed)
        yield


@contextmanager
def explain_picture_errors(spec: NetworkSpec, side: int) -> Iterator[None]:
    """Explain errors of a network that runs within as errors of the pictures' size.

    Args:
        spec: The network.
        side: Side of the pictures in pixels.

    Raises:
        UserError: The network raises any error.
    """
    try:
        yield
    except Exception as error:  # code of the network's own
        # The code of a library is right.
        option = spec.terms.model if spec.library == CUSTOM else spec.terms.preprocessing
        raise UserError(
            f"{option}: {spec.name} cannot take pictures of {side} x {side} pixels, the crop of the preprocessing "
            f"({type(error).__name__}: {reason_of(error)}); give another crop or network"
        ) from error


def _build_of_pixels(spec: NetworkSpec) -> tuple[nn.Module, Preprocessing]:
    """Build a classifier of pixels, with weights of the whole or of the network that computes its feature maps."""
    path = (
        spec.weights if isinstance(spec.weights, Path) and is_pixel_classifier(read_state_dict(spec.weights)) else None
    )
    network, preprocessing = build(replace(spec, pixels=False, weights=None if path else spec.weights))

    def classify(classes: int) -> PixelClassifier:
        with _seeded(spec):
            return PixelClassifier(network, preprocessing.crop, classes)

    whole = classify(spec.arguments.get("num_classes", 2))
    if path is not None:
        return load_weights(whole, path, classify), preprocessing
    if spec.weights is not None:
        whole.num_classes = 0
    return whole, preprocessing


def choose_model(spec: NetworkSpec) -> object:
    """Return the library's name of a network, also where it follows from the network's own name.

    Args:
        spec: The network.

    Raises:
        UserError: The library has no such model.
    """
    return spec.model if spec.library == CUSTOM else LIBRARIES[spec.library].choose(spec)


def _build_custom(spec: NetworkSpec) -> tuple[nn.Module, None]:
    terms = spec.terms
    if not isinstance(spec.weights, Path | None):
        raise UserError(f"weights: {spec.weights!r}, but a custom source takes a {FILES} file, or {terms.random}")
    make: Any = import_code(spec.model, spec.allowed_modules, terms.model)
    failed = f"{terms.arguments}: {spec.model} failed with {dict(spec.arguments)}"
    network = _call(
        lambda: make(**spec.arguments),
        terms.arguments,
        lambda error: f"{failed}: {type(error).__name__}: {reason_of(error)}",
    )
    if not isinstance(network, nn.Module):
        raise UserError(f"{terms.model}: {spec.model} returns a {type(network).__name__}, not a torch.nn.Module")
    return network if spec.weights is None else load_weights(network, spec.weights), None


def _build_from_library(spec: NetworkSpec) -> tuple[nn.Module, Preprocessing | None]:
    library, terms = LIBRARIES[spec.library], spec.terms
    loading = [key for key in spec.arguments if key.startswith(WEIGHT_ARGUMENTS)]
    if loading:
        raise UserError(f"{terms.arguments}.{loading[0]}: not allowed; weights are named by `weights` alone")
    model = library.choose(spec)
    called = f"{library.title}'s {model}"

    def create(weights: str | None, **arguments: Any) -> nn.Module:
        def explain(error: Exception) -> str:
            if weights is None or isinstance(error, TypeError | ValueError):
                return f"{terms.arguments}: {called} cannot be created with {arguments}: {reason_of(error)}"
            return (
                f"weights: {weights!r} of {called} could not be downloaded or loaded ({reason_of(error)}); check the "
                "connection, or name a local .safetensors or .pth file"
            )

        network: nn.Module = _call(partial(library.create, model, weights, arguments), terms.arguments, explain)
        return network

    require_usual_size(spec.arguments, partial(library.create, model, None, spec.arguments), terms.arguments)
    if isinstance(spec.weights, Path):

        def rebuild(classes: int) -> nn.Module:
            return create(None, **{**spec.arguments, "num_classes": classes})

        resized = rebuild if spec.library in CLASSIFIER_LIBRARIES else None
        network = load_weights(create(None, **spec.arguments), spec.weights, resized, library.convert)
        return network, library.preprocessing(network, model, None)

    if spec.weights is not None and spec.weights not in (identifiers := library.identifiers(model)):
        allowed = ", ".join([*identifiers, terms.random])
        raise UserError(f"weights: {called} has no {spec.weights!r}; allowed are {allowed}, or a {FILES} file")
    network = create(spec.weights, **spec.arguments)
    return network, library.preprocessing(network, model, spec.weights)


def _call(make: Callable[[], Any], named: str, explain: Callable[[Exception], str]) -> Any:  # noqa: ANN401 - any code
    """Call code that builds a network of at most a usual size.

    Args:
        make: The code.
        named: Name of its arguments in messages.
        explain: Returns the message for an error of any kind.
    """
    try:
        with limited_size(named):
            return make()
    except UserError:
        raise
    except Exception as error:  # a wrong argument or a failed download ends in errors of many unrelated kinds
        raise UserError(explain(error)) from error


def require_usual_size(arguments: Mapping[str, Any], create: Callable[[], object], named: str) -> None:
    """Check that a constructor's arguments define a network of a usual size, without memory for its weights.

    The network is built once on torch's meta device. A network whose code cannot do that is counted when it is built.

    Args:
        arguments: The arguments, JSON values; without any, a network has the library's own size.
        create: Builds the network.
        named: Name of the arguments in messages.

    Raises:
        UserError: A whole number is above a million, or the network has too many modules or weights.
    """
    for path, number in _whole_numbers(arguments, named):
        if abs(number) > LARGEST_ARGUMENT:
            raise UserError(f"{path}: {number} is given; whole numbers up to {LARGEST_ARGUMENT:,} are allowed")
    if arguments:
        try:
            with torch.device("meta"), torch.random.fork_rng(devices=[]), limited_size(named):
                create()
        except UserError:
            raise
        except Exception:
            # Building the network reports other mistakes.
            log.debug("not counted before it is built", exc_info=True)


@contextmanager
def limited_size(named: str) -> Iterator[None]:
    """Raise an error as soon as a network that is built within exceeds any usual size.

    Args:
        named: Name of the arguments in messages, from which the size follows.

    Raises:
        UserError: There are more than 50,000 modules or 20 billion weights.
    """
    sizes = Counter[str]()

    def count(parts: str, number: int, most: int) -> None:
        sizes[parts] += number
        if sizes[parts] > most:
            raise UserError(f"{named}: the network has more than {most:,} {parts}; choose a smaller one")

    def count_weights(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        count("weights", 0 if parameter is None else parameter.numel(), MOST_PARAMETERS)

    handles = [
        register_module_module_registration_hook(lambda *_: count("modules", 1, MOST_MODULES)),
        register_module_parameter_registration_hook(count_weights),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _whole_numbers(value: object, path: str) -> Iterator[tuple[str, int]]:
    if isinstance(value, int):
        yield path, value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _whole_numbers(part, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _whole_numbers(part, path)


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
    weights = torchvision.models.get_model_weights(str(choose_model(spec)))
    if spec.weights not in weights.__members__:
        return None
    measured = weights[spec.weights].meta.get("_metrics", {}).values()
    return next((accuracies["acc@1"] / 100 for accuracies in measured if "acc@1" in accuracies), None)


def _accuracy_of_file(path: Path) -> float | None:
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        text = (file.metadata() or {}).get(HELD_OUT_ACCURACY, "")
    try:
        accuracy = float(text)
    except ValueError:
        return None
    return accuracy if math.isfinite(accuracy) else None
