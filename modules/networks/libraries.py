"""The libraries of networks: their models, their weights and their constructors."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import torchvision
from torch import Tensor, nn

from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import NetworkSpec
from headstart.output.errors import UserError

DEFAULT = "DEFAULT"
# In registries of timm's models, the weights of the tag in a model's name, whatever they were trained on.
IMAGENET = "imagenet"
# Preparations of open_clip that scale the shorter side to the crop's.
CENTRE_CROPS = {("shortest", "bicubic"), ("shortest", "bilinear")}
_NO_SEPARATOR = r"[^_\-./:@ ]"


class Library(ABC):
    """A source of networks.

    Attributes:
        title: Name of the library.
    """

    title: str

    @abstractmethod
    def names(self) -> list[str]:
        """List the models."""

    @abstractmethod
    def identifiers(self, model: str) -> list[str]:
        """List the pretrained weights of a model."""

    @abstractmethod
    def create(self, model: str, weights: str | None, parameters: Mapping[str, Any]) -> nn.Module:
        """Create a network.

        Args:
            model: One of the names.
            weights: One of the model's identifiers, which is downloaded unless it was before; None for random weights.
            parameters: Further arguments of the constructor.

        Returns:
            The network.
        """

    def preprocessing(self, network: nn.Module, model: str, weights: str | None) -> Preprocessing | None:
        """Return the preparation of photos for a network.

        Args:
            network: The network, as `create` returned it.
            model: One of the names.
            weights: The pretrained weights that it has; None for random ones or those of a file.

        Returns:
            The preparation; None where the library does not define it, or it is no square centre crop.
        """
        return None

    def convert(self, network: nn.Module, state: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return a state dict with the names and sizes of a network, from one that its publishers wrote.

        Args:
            network: The network.
            state: Tensors by name, some of which do not fit.
        """
        return state

    @abstractmethod
    def usual_weights(self, model: str) -> str | None:
        """Return the default pretrained weights of a model; None where none are usual."""

    @abstractmethod
    def pretrained_preprocessing(self, model: str, weights: str) -> Preprocessing | None:
        """Return the preparation of photos for pretrained weights from the library's lists, without a network.

        Args:
            model: One of the names.
            weights: One of the model's identifiers.

        Returns:
            The preparation; None where it is no square centre crop.
        """

    def choose(self, spec: NetworkSpec) -> str:
        """Choose the model of a spec.

        Args:
            spec: The network.

        Returns:
            The model of the spec, or else the one with the spec's name. Otherwise the one whose name the spec's name
            contains between separators, if all other names in it are parts of that name.

        Raises:
            UserError: There is no such model, or the name is ambiguous.
        """
        names, key = self.names(), spec.name
        if spec.model is not None:
            if spec.model not in names:
                close = ", ".join(get_close_matches(str(spec.model), names)) or "nothing alike"
                raise UserError(f"{spec.terms.model}: {self.title} has no model {spec.model!r}; it has {close}")
            return str(spec.model)

        if key in names:
            return key

        contained = sorted((model for model in names if model in key), key=len)
        if not contained or not _contains_only(contained[-1], contained, key):
            listed = " and ".join(reversed(contained)) or "no name"
            alone = ", and none of them alone between separators" if contained else ""
            raise UserError(
                f"model_name: it contains {listed} of {self.title}'s models{alone}; "
                f"name the right one in {spec.terms.model}"
            )
        return contained[-1]


def _contains_only(model: str, contained: Sequence[str], key: str) -> bool:
    """Return whether all names that a key contains are parts of one model's name between separators."""
    spans = [match.span() for match in re.finditer(rf"(?<!{_NO_SEPARATOR}){re.escape(model)}(?!{_NO_SEPARATOR})", key)]
    return all(
        any(start <= match.start() and match.start() + len(name) <= end for start, end in spans)
        for name in contained
        for match in re.finditer(rf"(?={re.escape(name)})", key)
    )


class Torchvision(Library):
    """Classifiers of torchvision, `torchvision.models.get_model`."""

    title = "torchvision"

    def names(self) -> list[str]:
        """List the classifiers; other models have no single photo as input or no single output."""
        return list(torchvision.models.list_models(module=torchvision.models))

    def identifiers(self, model: str) -> list[str]:
        """List the weights' names, such as IMAGENET1K_V2."""
        names = [entry.name for entry in torchvision.models.get_model_weights(model)]
        return [*names, DEFAULT] if names else []

    def create(self, model: str, weights: str | None, parameters: Mapping[str, Any]) -> nn.Module:
        """Create a classifier."""
        entry = None if weights is None else torchvision.models.get_model_weights(model)[weights]
        network: nn.Module = torchvision.models.get_model(model, weights=entry, **parameters)
        return network

    def preprocessing(self, network: nn.Module, model: str, weights: str | None) -> Preprocessing | None:
        """Return the preparation of the weights; without weights the usual one of ImageNet."""
        return Preprocessing() if weights is None else self.pretrained_preprocessing(model, weights)

    def usual_weights(self, model: str) -> str | None:
        """Return the weights that torchvision recommends."""
        recommended = getattr(torchvision.models.get_model_weights(model), DEFAULT, None)
        return None if recommended is None else str(recommended.name)

    def pretrained_preprocessing(self, model: str, weights: str) -> Preprocessing:
        """Return the preparation of the weights' transforms."""
        return Preprocessing.from_torchvision(torchvision.models.get_model_weights(model)[weights].transforms())


class Timm(Library):
    """Models of timm, `timm.create_model`, by their name alone or with the tag of weights, `name.tag`."""

    title = "timm"

    def names(self) -> list[str]:
        """List the models without and with tags."""
        import timm  # slow to import, and torchvision's models do not need it

        return [*timm.list_models(), *timm.list_models(pretrained=True)]

    def choose(self, spec: NetworkSpec) -> str:
        """Choose as `Library.choose`; an unknown tag is an error where it defines the weights."""
        model = super().choose(spec)
        architecture = model.partition(".")[0]
        tag = spec.name.partition(f"{architecture}.")[2]
        if spec.model is None and spec.weights == IMAGENET and tag and model != f"{architecture}.{tag}":
            tags = ", ".join(name for name in self.identifiers(architecture) if name not in {DEFAULT, IMAGENET})
            raise UserError(f"model_name: timm's {architecture} has no weights {tag!r}; it has {tags}")
        return model

    def identifiers(self, model: str) -> list[str]:
        """List the tags of a model, or the one in its name; an only tag is also called `imagenet`."""
        import timm

        architecture, _, tag = model.partition(".")
        tagged = timm.list_models(f"{architecture}.*", pretrained=True)
        tags = [tag] if tag else [name.partition(".")[2] for name in tagged]
        return [*tags, DEFAULT, *([IMAGENET] if len(tags) == 1 else [])] if tags else []

    def create(self, model: str, weights: str | None, parameters: Mapping[str, Any]) -> nn.Module:
        """Create a model."""
        import timm

        name = model if weights in {None, DEFAULT, IMAGENET} else f"{model.partition('.')[0]}.{weights}"
        network: nn.Module = timm.create_model(name, pretrained=weights is not None, **parameters)
        return network

    def convert(self, network: nn.Module, state: dict[str, Tensor]) -> dict[str, Tensor]:
        """Convert by the function that timm applies to what it downloads."""
        convert = getattr(import_module(type(network).__module__), "checkpoint_filter_fn", None)
        return state if convert is None else dict(convert(state, network))

    def preprocessing(self, network: nn.Module, model: str, weights: str | None) -> Preprocessing | None:
        """Return the preparation of the network's own configuration."""
        import timm

        return Preprocessing.from_timm(timm.data.resolve_model_data_config(network))

    def usual_weights(self, model: str) -> str | None:
        """Return the tag in the model's name, else the first of timm's list."""
        import timm

        config = timm.get_pretrained_cfg(model)
        return config.tag or DEFAULT if config is not None and config.has_weights else None

    def pretrained_preprocessing(self, model: str, weights: str) -> Preprocessing | None:
        """Return the preparation of the weights' configuration."""
        import timm

        name = model if weights == DEFAULT else f"{model.partition('.')[0]}.{weights}"
        config = timm.get_pretrained_cfg(name).to_dict()
        return Preprocessing.from_timm(timm.data.resolve_data_config(pretrained_cfg=config))


class OpenClip(Library):
    """Models of open_clip, `open_clip.create_model`; called with photos alone, they run their image tower alone."""

    title = "open_clip"

    def names(self) -> list[str]:
        """List the built-in models."""
        return list(_import_open_clip().list_models())

    def identifiers(self, model: str) -> list[str]:
        """List the pretrained tags of a model."""
        return list(_import_open_clip().list_pretrained_tags_by_model(model))

    def create(self, model: str, weights: str | None, parameters: Mapping[str, Any]) -> nn.Module:
        """Create a model; without weights neither tower downloads any of its own."""
        network: nn.Module = _import_open_clip().create_model(
            model, pretrained=weights, pretrained_image=False, pretrained_text=False, **parameters
        )
        return network

    def usual_weights(self, model: str) -> str | None:
        """Return the only tag; None where there are several."""
        tags = self.identifiers(model)
        return tags[0] if len(tags) == 1 else None

    def pretrained_preprocessing(self, model: str, weights: str) -> Preprocessing | None:
        """Return the preparation by the lists of models and weights, from which open_clip builds its own transform."""
        open_clip = _import_open_clip()
        size = open_clip.get_model_config(model)["vision_cfg"]["image_size"]
        options = open_clip.transform.merge_preprocess_dict(
            {"size": size}, open_clip.get_pretrained_cfg(model, weights)
        )
        config = open_clip.transform.PreprocessCfg(**options)
        if not isinstance(config.size, int) or (config.resize_mode, config.interpolation) not in CENTRE_CROPS:
            return None
        return Preprocessing(config.size, config.size, config.mean, config.std, config.interpolation)

    def embedding_width(self, model: str) -> int:
        """Return the width of the image tower's embedding."""
        return int(_import_open_clip().get_model_config(model)["embed_dim"])


def _import_open_clip() -> Any:  # noqa: ANN401 - an optional package without types
    try:
        return import_module("open_clip")
    except ImportError as error:
        raise UserError(f"open_clip cannot be imported ({error}); pip install 'headstart[open_clip]'") from error


LIBRARIES: dict[str, Library] = {library.title: library for library in (Torchvision(), Timm(), OpenClip())}
