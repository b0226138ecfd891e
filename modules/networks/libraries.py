"""The libraries that networks come from: which models and weights they know, and how they create them."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import torchvision
from torch import nn

from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import NetworkSpec
from headstart.output.errors import UserError

DEFAULT = "DEFAULT"
# What registries of timm's models call the weights that the tag in a model's name tells, whatever they were trained on.
IMAGENET = "imagenet"
# Of open_clip's ways to prepare a picture, those whose shorter side is scaled to the crop's.
CENTRE_CROPS = {("shortest", "bicubic"), ("shortest", "bilinear")}
_NO_SEPARATOR = r"[^_\-./:@ ]"


class Library(ABC):
    """A source of networks.

    Attributes:
        title: What the library is called.
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
            weights: One of the model's identifiers, which is downloaded unless it was before; None draws weights.
            parameters: Further arguments of the constructor.

        Returns:
            The network.
        """

    def preprocessing(self, network: nn.Module, model: str, weights: str | None) -> Preprocessing | None:
        """Tell how photos are prepared for a network.

        Args:
            network: The network, as `create` gives it.
            model: One of the names.
            weights: The pretrained weights that it has; None for random ones or those of a file.

        Returns:
            The preparation; None where the library does not tell, or it is no square centre crop.
        """
        return None

    @abstractmethod
    def usual_weights(self, model: str) -> str | None:
        """Name the pretrained weights of a model that are meant where none are named; None where none are usual."""

    @abstractmethod
    def pretrained_preprocessing(self, model: str, weights: str) -> Preprocessing | None:
        """Tell how photos are prepared for pretrained weights, as the library's lists have it, without a network.

        Args:
            model: One of the names.
            weights: One of the model's identifiers.

        Returns:
            The preparation; None where it is no square centre crop.
        """

    def choose(self, spec: NetworkSpec) -> str:
        """Choose the model that is meant.

        Args:
            spec: The network.

        Returns:
            The model that it gives; else the one of its name; else the one whose name its name contains between
            separators, if all other names that it contains are parts of that name.

        Raises:
            UserError: There is no such model, or more than one may be meant.
        """
        names, key = self.names(), spec.name
        if spec.model is not None:
            if spec.model not in names:
                close = ", ".join(get_close_matches(str(spec.model), names)) or "nothing alike"
                raise UserError(
                    f"{spec.terms.model}: {self.title} has no model {spec.model!r}; it has {close}"
                    + spec.terms.elsewhere
                )
            return str(spec.model)
        if key in names:
            return key
        found = sorted((model for model in names if model in key), key=len)
        if not found or not _is_all_there_is(found[-1], found, key):
            listed = " and ".join(reversed(found)) or "no name"
            alone = ", and none of them alone between separators" if found else ""
            raise UserError(
                f"model_name: it contains {listed} of {self.title}'s models{alone}; "
                f"{spec.terms.model} names the one that is meant"
            )
        return found[-1]


def _is_all_there_is(model: str, found: Sequence[str], key: str) -> bool:
    """Tell whether all names that a key contains lie in places where it has one model's name between separators."""
    places = [match.span() for match in re.finditer(rf"(?<!{_NO_SEPARATOR}){re.escape(model)}(?!{_NO_SEPARATOR})", key)]
    return all(
        any(start <= match.start() and match.start() + len(name) <= end for start, end in places)
        for name in found
        for match in re.finditer(rf"(?={re.escape(name)})", key)
    )


class Torchvision(Library):
    """Classifiers of torchvision, `torchvision.models.get_model`."""

    title = "torchvision"

    def names(self) -> list[str]:
        """List the classifiers; other models take no single photo or give no single output."""
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
        """Tell the weights' own; of others the usual one of ImageNet."""
        if weights is None:
            return Preprocessing()
        return Preprocessing.from_torchvision(torchvision.models.get_model_weights(model)[weights].transforms())

    def usual_weights(self, model: str) -> str | None:
        """Name those that torchvision recommends."""
        recommended = getattr(torchvision.models.get_model_weights(model), DEFAULT, None)
        return None if recommended is None else str(recommended.name)

    def pretrained_preprocessing(self, model: str, weights: str) -> Preprocessing | None:
        """Tell that of the weights' transforms."""
        return Preprocessing.from_torchvision(torchvision.models.get_model_weights(model)[weights].transforms())


class Timm(Library):
    """Models of timm, `timm.create_model`, by their name alone or with the tag of weights, `name.tag`."""

    title = "timm"

    def names(self) -> list[str]:
        """List the models without and with tags."""
        import timm  # slow to import, and torchvision's models do not need it

        return [*timm.list_models(), *timm.list_models(pretrained=True)]

    def choose(self, spec: NetworkSpec) -> str:
        """Choose as `Library.choose`; a tag that timm does not have is an error where it is to tell the weights."""
        model = super().choose(spec)
        architecture = model.partition(".")[0]
        tag = spec.name.partition(f"{architecture}.")[2]
        if spec.model is None and spec.weights == IMAGENET and tag and model != f"{architecture}.{tag}":
            tags = ", ".join(each for each in self.identifiers(architecture) if each not in {DEFAULT, IMAGENET})
            raise UserError(f"model_name: timm's {architecture} has no weights {tag!r}; it has {tags}")
        return model

    def identifiers(self, model: str) -> list[str]:
        """List the tags of a model, or the one that its name has; where there is but one, `imagenet` is it, too."""
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

    def preprocessing(self, network: nn.Module, model: str, weights: str | None) -> Preprocessing | None:
        """Tell what the network's own configuration says."""
        import timm

        return Preprocessing.from_timm(timm.data.resolve_model_data_config(network))

    def usual_weights(self, model: str) -> str | None:
        """Name the tag in the model's name, else the first of timm's list."""
        import timm

        config = timm.get_pretrained_cfg(model)
        return config.tag or DEFAULT if config is not None and config.has_weights else None

    def pretrained_preprocessing(self, model: str, weights: str) -> Preprocessing | None:
        """Tell what the configuration of the weights says."""
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
        """Name the only tag, where there is but one."""
        tags = self.identifiers(model)
        return tags[0] if len(tags) == 1 else None

    def pretrained_preprocessing(self, model: str, weights: str) -> Preprocessing | None:
        """Tell what the lists of models and weights say, which open_clip's own transform is made of."""
        open_clip = _import_open_clip()
        size = open_clip.get_model_config(model)["vision_cfg"]["image_size"]
        told = open_clip.get_pretrained_cfg(model, weights)
        config = open_clip.transform.merge_preprocess_dict({"size": size}, told)
        config = open_clip.transform.PreprocessCfg(**config)
        if not isinstance(config.size, int) or (config.resize_mode, config.interpolation) not in CENTRE_CROPS:
            return None
        return Preprocessing(config.size, config.size, config.mean, config.std, config.interpolation)

    def embedding_width(self, model: str) -> int:
        """Tell the columns of what the image tower gives."""
        return int(_import_open_clip().get_model_config(model)["embed_dim"])


def _import_open_clip() -> Any:  # noqa: ANN401 - an optional package without types
    try:
        return import_module("open_clip")
    except ImportError as error:
        raise UserError(f"open_clip cannot be imported ({error}); pip install 'headstart[open_clip]'") from error


LIBRARIES: dict[str, Library] = {library.title: library for library in (Torchvision(), Timm(), OpenClip())}
