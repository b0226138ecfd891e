"""The definition of a network, and its identity: its weights and code. It needs neither the built network nor torch."""

import hashlib
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, Literal

from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.provenance import user_digests
from headstart.modules.running_code import installed_packages
from headstart.output.errors import UserError, reason_of
from headstart.output.files import digest_file
from headstart.store.json_digest import digest_of

LibraryName = Literal["torchvision", "timm", "open_clip", "custom"]
CUSTOM: LibraryName = "custom"
PACKAGES = {"torchvision": "torchvision", "timm": "timm", "open_clip": "open_clip_torch"}
WEIGHT_FILES = (".safetensors", ".pth", ".pt")
# Value of `trainable_from` that trains the whole network; other values name the first module that is trained.
WHOLE_NETWORK = "all"
# Libraries whose networks end in a classifier; the argument `num_classes` sets its width.
CLASSIFIER_LIBRARIES = ("torchvision", "timm")


@dataclass(frozen=True)
class WeightsAddress:
    """A file of weights that is downloaded once.

    Attributes:
        url: Its address.
        sha256: Its SHA-256, hexadecimal.
    """

    url: str
    sha256: str

    def __str__(self) -> str:
        """Return the address."""
        return self.url


@dataclass(frozen=True)
class MessageTerms:
    """Names of a network's parts in messages: the fields of the document that defines it.

    Attributes:
        model: The model's name.
        arguments: The constructor's arguments.
        preprocessing: The preparation of photos for it.
        random: Random weights.
    """

    model: str = "model_parameters.name"
    arguments: str = "model_parameters"
    preprocessing: str = "preprocess"
    random: str = "null"


@dataclass(frozen=True)
class NetworkSpec:
    """The definition of a network.

    Attributes:
        name: Its name. If `model` is None, its library knows it by the same name.
        library: Its library.
        model: Its name in its library; for a custom network, the dotted path of the function that builds it.
        weights: Identifier of pretrained weights in the library, a file with a state dict, or the address of such a
            file; None for random weights.
        arguments: Further arguments of its constructor.
        seed: Seed of random weights.
        preprocessing: Preprocessing of photos for it; None for that of the pretrained weights.
        forward_args: Arguments of its forward call, besides the photos.
        allowed_modules: Modules and packages from which a custom network may be imported; None for any.
        pixels: Whether it classifies every pixel. It is then a `PixelClassifier` on the feature maps of the named
            network, and `weights` belong to the named network or to the whole `PixelClassifier`.
        loaded_sha256: SHA-256 of the loaded weights except the classifier's. It is None if it is not known yet, or if
            the classifier matters. It replaces the name of the weights in `identity`.
        terms: Names of its parts in messages.
    """

    name: str
    library: LibraryName
    model: object = None
    weights: str | Path | WeightsAddress | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    preprocessing: Preprocessing | None = None
    forward_args: Mapping[str, Any] = field(default_factory=dict)
    allowed_modules: Sequence[str] | None = ()
    pixels: bool = False
    loaded_sha256: str | None = None
    terms: MessageTerms = field(default=MessageTerms(), compare=False)

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Everything that determines the network's outputs for preprocessed photos, as JSON values.

        A file of weights is identified by its bytes, a library by its version, and random weights by the seed and the
        version of torch. A custom network is identified by all files of its package, and by all modules of the user
        that are loaded. Files are read once.

        Raises:
            UserError: The file of weights or of code is missing.
        """
        arguments = dict(self.arguments)
        if self.loaded_sha256 is not None and self.library in CLASSIFIER_LIBRARIES and arguments.get("num_classes"):
            # The number of classes changes the classifier only, except 0: some networks then also omit earlier layers.
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
        """SHA-256 of `identity`, hexadecimal. Raises the same errors."""
        return hashlib.sha256(json.dumps(self.identity, sort_keys=True, default=str).encode()).hexdigest()

    def _identify_weights(self) -> dict[str, Any]:
        if self.loaded_sha256 is not None:
            return {"loaded": self.loaded_sha256}
        random_weights = {"seed": self.seed, "torch": _version("torch")}
        if self.weights is None:
            return random_weights
        if isinstance(self.weights, str):
            # If the weights have another number of classes, the classifier is initialised randomly.
            return {"identifier": self.weights, **(random_weights if self.arguments.get("num_classes") else {})}
        return {"file": self.file_digest}

    @property
    def file_digest(self) -> str | None:
        """SHA-256 of the file of weights, hexadecimal; None where the library chooses the file, and for random weights.

        Raises:
            UserError: The file is missing.
        """
        if isinstance(self.weights, WeightsAddress):
            return self.weights.sha256
        if not isinstance(self.weights, Path):
            return None
        if not self.weights.is_file():
            raise UserError(f"weights: there is no file {str(self.weights)!r}")
        return digest_file(self.weights)

    def _digest_code(self) -> str:
        function = import_code(self.model, self.allowed_modules, self.terms.model)
        parts = {
            # All files of the package count, since running the network may import more of them.
            "files": {name: digest_file(file) for name, file in files_of_code(str(self.model)).items()},
            "own": user_digests([function]),
            "packages": installed_packages(),
        }
        return digest_of(parts)


def import_code(path: object, allowed_modules: Sequence[str] | None, term: str) -> object:
    """Import the function that builds a network.

    Args:
        path: Its dotted path, `package.module.function`.
        allowed_modules: Modules and packages from which the function may be imported; None for any.
        term: Name of the path in messages.

    Raises:
        UserError: The path has another form, its module is not allowed or cannot be imported, or it has no such
            function.
    """
    if not isinstance(path, str) or not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)+", path):
        raise UserError(f"{term}: {path!r}, but a custom source needs a dotted path, package.module.function")
    module, _, function = path.rpartition(".")
    allowed = (module,) if allowed_modules is None else allowed_modules
    if not any(f"{module}.".startswith(f"{package}.") for package in allowed):
        raise UserError(
            f"{term}: custom code of the module {module!r} is not allowed; if you trust it, name it "
            "or its package in extraction.allow_modules"
        )
    try:
        return getattr(import_module(module), function)
    except Exception as error:  # the user's code may raise any
        raise UserError(f"{term}: {path} cannot be imported: {type(error).__name__}: {reason_of(error)}") from error


def files_of_code(path: str) -> dict[str, Path]:
    """Return the Python files of the top-level package or module of imported code, sorted by their relative names.

    Args:
        path: As for `import_code`.
    """
    package = sys.modules[path.partition(".")[0]]
    files = {
        file.relative_to(folder).as_posix(): file
        for folder in map(Path, getattr(package, "__path__", ()))
        for file in folder.rglob("*.py")
        if file.is_file()
    }
    if not files and package.__file__ is not None:
        files = {Path(package.__file__).name: Path(package.__file__)}
    return dict(sorted(files.items()))


@contextmanager
def prefix_model_errors(name: str) -> Iterator[None]:
    """Prefix the message of a UserError in this context with the name of a model."""
    try:
        yield
    except UserError as error:
        raise UserError(f"model {name!r}: {error}") from error


def _version(package: str) -> str | None:
    """Return the version of a package. None if it is not installed: the error is raised when the network is built."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
