"""The options that choose a backbone and its weights; this module does not import torch."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import (
    CUSTOM,
    WEIGHT_FILES,
    LibraryName,
    MessageTerms,
    NetworkSpec,
    WeightsAddress,
    import_code,
)
from headstart.output.errors import UserError, prefix_errors

TIMM_PREFIX = "timm/"
URL_PREFIXES = ("https://", "http://")
DIGEST_MARK = "#sha256="
RANDOM = "random"
EMBEDDED = "embedded"
EMBEDDED_MODEL = "mobilenet_v2"
EMBEDDED_WEIGHTS = Path(__file__).parent / "embedded" / "mobilenet_v2_035_drawn_objects.safetensors"
EMBEDDED_ARGUMENTS = {"width_mult": 0.35}
EMBEDDED_PREPROCESSING = Preprocessing(resize=64, crop=64)
TERMS = MessageTerms("name", "model_args", "preprocessing", RANDOM)


@dataclass(frozen=True)
class BackboneSpec:
    """The choice of a backbone and of its weights.

    Args:
        name: A torchvision classifier (`mobilenet_v2`, `resnet50`, ...), or `timm/` and any timm model
            (`timm/vit_tiny_patch16_224.augreg_in21k_ft_in1k`). It may also be your own function or class that returns a
            network (`my_networks.TinyNet`), or with `registry` one of its entries.
        weights: Name of the library's weights (`IMAGENET1K_V2`). `DEFAULT` means torchvision's best weights of the
            model, or the weights of timm's model. `embedded` means the weights of the small network that comes with the
            suite; `random` means no pretrained weights. It may also be a local `.safetensors` or `.pth` file with a
            state dict, whose head may have any size. Such a file is downloaded once if its address and its SHA-256 are
            given (`https://.../model.safetensors#sha256=...`).
        model_args: Arguments of the model's constructor, such as `{width_mult: 0.35}`, which is the default for the
            embedded weights.
        preprocessing: Preparation of photos. The default is that of the weights. For torchvision models with weights
            from a file, it is the usual one of ImageNet (resize 256, crop 224). Your own network has no default.
        registry: Model registry of the evaluation contract, a JSON file. It is searched in the working folder, then in
            the checkout. Its entry defines everything else.
    """

    name: str = "mobilenet_v2"
    weights: str = "DEFAULT"
    model_args: dict[str, Any] = field(default_factory=dict)
    preprocessing: Preprocessing | None = None
    registry: str | None = None

    @property
    def _is_user_code(self) -> bool:
        return "." in self.name and not self.name.startswith(TIMM_PREFIX)

    def import_user_code(self) -> None:
        """Import the user's code of a network, if the backbone is such a network.

        The keys of traces depend on the modules that this code imports, so they are imported before keys are made.

        Raises:
            UserError: The code cannot be imported.
        """
        if self.registry is None and self._is_user_code:
            import_code(self.name, None, "name")

    def network(self, seed: int) -> NetworkSpec:
        """Return the chosen network, unless it is an entry of a registry.

        Args:
            seed: Seed of random weights; without effect on pre-trained ones.

        Returns:
            The network.

        Raises:
            UserError: The preprocessing is impossible; the embedded weights are not of this network; or an address
                lacks the SHA-256 of its file.
        """
        if self.preprocessing is not None:
            with prefix_errors("preprocessing"):
                self.preprocessing.check()

        library: LibraryName = "torchvision"
        model = self.name
        if self.name.startswith(TIMM_PREFIX):
            library, model = "timm", self.name.removeprefix(TIMM_PREFIX)
        elif self._is_user_code:
            library = CUSTOM

        if self.weights == EMBEDDED and self.name != EMBEDDED_MODEL:
            raise UserError(
                f"name: {self.name!r} given, but the weights {EMBEDDED} are of {EMBEDDED_MODEL}; give other weights"
            )

        path = EMBEDDED_WEIGHTS if self.weights == EMBEDDED else Path(self.weights).expanduser()
        weights: str | Path | WeightsAddress | None = None if self.weights == RANDOM else self.weights
        if self.weights.startswith(URL_PREFIXES):
            weights = _read_address(self.weights)
        elif path.suffix in WEIGHT_FILES:
            weights = path
        return NetworkSpec(
            name=self.name,
            library=library,
            model=model,
            weights=weights,
            arguments={**(EMBEDDED_ARGUMENTS if self.weights == EMBEDDED else {}), **self.model_args},
            seed=seed,
            preprocessing=self.preprocessing or (EMBEDDED_PREPROCESSING if self.weights == EMBEDDED else None),
            allowed_modules=None,
            terms=TERMS,
        )


def without_digest(weights: str) -> str:
    """Return the option `weights` as reports show it: an address without the SHA-256 of its file.

    Args:
        weights: The option `weights`.
    """
    return weights.partition(DIGEST_MARK)[0]


def _read_address(text: str) -> WeightsAddress:
    url, _, sha256 = text.partition(DIGEST_MARK)
    if not url.endswith(WEIGHT_FILES) or not re.fullmatch("[0-9a-f]{64}", sha256):
        raise UserError(
            f"weights: {text!r} is not the address of a {' or '.join(WEIGHT_FILES)} file with its SHA-256; write "
            f"https://.../model.safetensors{DIGEST_MARK} and 64 hexadecimal digits in lower case"
        )
    return WeightsAddress(url, sha256)
