"""Which network is meant, with which weights: named and told apart from all others without building it, or torch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from headstart.modules.networks.custom_code import find_code
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.output.errors import UserError
from headstart.output.files import digest_file

LibraryName = Literal["torchvision", "timm", "open_clip", "custom"]
CUSTOM: LibraryName = "custom"
PACKAGES = {"torchvision": "torchvision", "timm": "timm", "open_clip": "open_clip_torch"}
WEIGHT_FILES = (".safetensors", ".pth", ".pt")
# Libraries whose networks end in a classifier, whose width the argument `num_classes` gives.
CLASSIFIERS = ("torchvision", "timm")


@dataclass(frozen=True)
class Terms:
    """What messages call the parts of a network, as the document does that it is named in.

    Attributes:
        model: The model's name.
        arguments: The constructor's arguments.
        preprocessing: How photos are prepared for it.
        random: Random weights.
        elsewhere: Where other models are, for whoever names one that a library does not have.
    """

    model: str = "model_parameters.name"
    arguments: str = "model_parameters"
    preprocessing: str = "preprocess"
    random: str = "null"
    elsewhere: str = ""


@dataclass(frozen=True)
class NetworkSpec:
    """A network that is meant.

    Attributes:
        name: What it is called. Where `model` is None, it tells the model, too.
        library: Where it comes from.
        model: The library's name for it, or of a custom one the dotted path of the function that makes it.
        weights: Pretrained identifier of the library, a file with a state dict, or None for random weights.
        arguments: Further arguments of its constructor.
        seed: Seed of random weights.
        preprocessing: How photos are prepared for it; None for the weights' own way.
        forward_args: Arguments of its forward call, besides the photos.
        allowed_modules: Modules and packages that a custom one may come from; None for any.
        pixels: Whether it classifies every pixel: a `PixelClassifier` of the named network's feature maps, with weights
            of the whole or of that network.
        loaded: SHA-256 of the weights without a classifier as they were loaded, where that is known and the
            classifier does not matter: whatever names them, it is these.
        terms: What messages call its parts.
    """

    name: str
    library: LibraryName
    model: object = None
    weights: str | Path | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    preprocessing: Preprocessing | None = None
    forward_args: Mapping[str, Any] = field(default_factory=dict)
    allowed_modules: Sequence[str] | None = ()
    pixels: bool = False
    loaded: str | None = None
    terms: Terms = field(default=Terms(), compare=False)

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What tells the network from all others, as JSON values: all that decides what it makes of prepared photos.

        A file of weights counts by its bytes, a library and random weights by its version; of a custom network all
        code of its package counts, and code outside of it does not. Files are read once.

        Raises:
            UserError: The file of weights, or that of the code, is missing.
        """
        arguments = dict(self.arguments)
        if self.loaded is not None and self.library in CLASSIFIERS and arguments.get("num_classes"):
            # Without any, some networks also lack layers before their classifier.
            del arguments["num_classes"]
        return {
            "library": self.library,
            "model": self.name if self.model is None else self.model,
            "arguments": arguments,
            "forward_args": dict(self.forward_args),
            "code": self._digest_code() if self.library == CUSTOM else _version(PACKAGES[self.library]),
            "weights": self._identify_weights(),
            **({"pixels": True} if self.pixels else {}),
        }

    @property
    def digest(self) -> str:
        """SHA-256 of the identity, hexadecimal; errors as of it."""
        return hashlib.sha256(json.dumps(self.identity, sort_keys=True, default=str).encode()).hexdigest()

    def _identify_weights(self) -> dict[str, Any]:
        if self.loaded is not None:
            return {"loaded": self.loaded}
        drawn = {"seed": self.seed, "torch": _version("torch")}
        if self.weights is None:
            return drawn
        if isinstance(self.weights, str):
            # A classifier of another width than the weights' own is drawn.
            return {"identifier": self.weights, **(drawn if self.arguments.get("num_classes") else {})}
        if not self.weights.is_file():
            raise UserError(f"weights: there is no file {str(self.weights)!r}")
        return {"file": digest_file(self.weights)}

    def _digest_code(self) -> str:
        digest = hashlib.sha256()
        for name, path in find_code(self.model, self.allowed_modules, self.terms.model).items():
            digest.update(f"{name}\0{digest_file(path)}\0".encode(errors="surrogateescape"))
        return digest.hexdigest()


@contextmanager
def prefix_model_errors(name: str) -> Iterator[None]:
    """Put a model's name before the user's mistakes that are found within."""
    try:
        yield
    except UserError as error:
        raise UserError(f"model {name!r}: {error}") from error


def _version(package: str) -> str | None:
    """Give the version of a package, None where it is not installed: building the network then says so."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
