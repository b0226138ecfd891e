"""Registry entries for models of the libraries, from the libraries' own data configuration; nothing is downloaded."""

from collections.abc import Mapping
from dataclasses import asdict
from importlib.util import find_spec
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torchvision.models import VisionTransformer

from headstart.contract.schema import Embedding, ModelEntry, Preprocess
from headstart.modules.networks.embedding_strategy import DEFAULT_STRATEGIES, Prefix, embed
from headstart.modules.networks.libraries import LIBRARIES, Library, OpenClip
from headstart.modules.networks.spec import PACKAGES, LibraryName
from headstart.modules.networks.taps import LOGITS, PENULTIMATE
from headstart.modules.networks.weights import heads
from headstart.output.errors import UserError

# The module of open_clip's models that embeds photos.
IMAGE_TOWER = "visual"


class LibraryModel(NamedTuple):
    """A model of a library.

    Attributes:
        name: The name that the user gave, without the library.
        title: The library.
        model: The library's name for the model.
        tag: The weights in the user's name; None for the usual ones.
    """

    name: str
    title: LibraryName
    model: str
    tag: str | None


def make_entry(name: str) -> ModelEntry:
    """Make the entry of a model: its pretrained weights, its preprocessing, and the input of its classifier.

    Args:
        name: A library's name of a model. A dot and a tag after it choose other weights than the usual ones. The prefix
            `timm:`, `torchvision:` or `open_clip:` chooses among several libraries that have the model.

    Returns:
        The entry, whose key is the name without the library. It leaves output_dim out where the network cannot be run
        without weights.

    Raises:
        UserError: No library or several have such a model. Or it has no pretrained weights, or several and no usual
            ones. Or an entry cannot describe its preprocessing.
    """
    named = find_model(name)
    library = LIBRARIES[named.title]
    weights = named.tag or library.usual_weights(named.model)
    if weights is None:
        tags = ", ".join(library.identifiers(named.model))
        missing = f"none are usual; append a dot and one of: {tags}" if tags else f"{named.title} has none"
        raise UserError(f"make: of the pretrained weights of {named.name!r} {missing}")
    preprocessing = library.pretrained_preprocessing(named.model, weights)
    if preprocessing is None:
        raise UserError(f"make: {name!r} does not use a square crop from the centre, so no entry can describe it")

    arguments: dict[str, Any] = {}
    features: tuple[str, Embedding, int | None]
    if isinstance(library, OpenClip):
        features = IMAGE_TOWER, "flatten", library.embedding_width(named.model)
    else:
        network = _create_on_meta(library, named.model, {})
        if isinstance(network, VisionTransformer) and network.image_size != preprocessing.crop:
            # Some weights are for larger pictures than the network's default.
            arguments = {"image_size": preprocessing.crop}
            network = _create_on_meta(library, named.model, arguments)
        features = _find_features(network, preprocessing.crop)

    layer, embedding, width = features
    optional: dict[str, Any] = {} if width is None else {"output_dim": width}
    if named.name != named.model:
        arguments = {"name" if named.title == "torchvision" else "model_name": named.model, **arguments}
    if arguments:
        optional["model_parameters"] = arguments
    return ModelEntry(
        model_name=named.name,
        source=named.title,
        weights=weights,
        layer=layer,
        embedding=embedding,
        input_size=(preprocessing.crop, preprocessing.crop),
        preprocess=Preprocess(**asdict(preprocessing)),
        **optional,
    )


def find_model(name: str) -> LibraryModel:
    """Find a model by its name; arguments and errors as for `make_entry`."""
    prefix, _, rest = name.partition(":")
    libraries = [prefix] if prefix in LIBRARIES else [title for title in LIBRARIES if find_spec(title) is not None]
    text = rest if prefix in LIBRARIES else name
    matches = [match for title in libraries if (match := _match(cast("LibraryName", title), text))]
    if len(matches) == 1:
        return matches[0]
    if matches:
        choices = " or ".join(f"{match.title}:{text}" for match in matches)
        raise UserError(f"make: {name!r} is a model of several libraries; give {choices}")

    absent = [title for title in PACKAGES if title not in libraries and prefix not in LIBRARIES]
    hint = f"; {absent[0]} is not installed, pip install 'headstart[{absent[0]}]'" if absent else ""
    raise UserError(
        f"make: {name!r} is not a model of {' or '.join(libraries)}, with or without a tag of weights{hint}"
    )


def _match(title: LibraryName, text: str) -> LibraryModel | None:
    names = LIBRARIES[title].names()
    if text in names:
        return LibraryModel(text, title, text, None)
    model, _, tag = text.rpartition(".")
    is_known = model in names and tag in LIBRARIES[title].identifiers(model)
    return LibraryModel(text, title, model, tag) if is_known else None


def _create_on_meta(library: Library, model: str, arguments: Mapping[str, Any]) -> nn.Module:
    """Create a network without weights."""
    try:
        with torch.device("meta"):
            network = library.create(model, None, arguments)
    except NotImplementedError:  # the constructor computes with tensors, as that of torchvision's RegNet
        network = library.create(model, None, arguments).to("meta")
    return network.eval()


def _find_features(network: nn.Module, side: int) -> tuple[str, Embedding, int | None]:
    """Return the layer before the classifier, the strategy for its shape, and the width of the embedding."""
    classifiers = heads(network)
    path = next(iter(classifiers), None)
    # The alias is defined for a single linear classifier.
    alias = len(classifiers) == 1 and isinstance(classifiers[str(path)], nn.Linear)
    layer = LOGITS if path is None else PENULTIMATE if alias else path
    values = _shape_at(network, path, side)
    if values is None:
        return layer, "flatten" if alias or path is None else "pool", None
    strategy = DEFAULT_STRATEGIES[values.ndim]
    return layer, strategy, embed(values, strategy, Prefix()).shape[1]


def _shape_at(network: nn.Module, classifier: str | None, side: int) -> Tensor | None:
    """Run a network without weights, and return the input of its classifier, or its output if it has none."""
    inputs: list[Tensor] = []
    if classifier is not None:
        network.get_submodule(classifier).register_forward_pre_hook(lambda _, args: inputs.append(args[0]))
    try:
        with torch.no_grad(), torch.device("meta"):
            output = network(torch.zeros(1, 3, side, side))
    except Exception:
        return None
    values = inputs[0] if inputs else output
    return values if isinstance(values, Tensor) and values.ndim in DEFAULT_STRATEGIES else None
