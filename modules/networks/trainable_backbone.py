"""A backbone, or the tail of one behind a freeze boundary, that methods train and evaluate."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from headstart.modules.networks.folding import FoldedNetwork
from headstart.output.errors import UserError

BatchNorm = Literal["frozen", "trained"]
Precision = Literal["float32", "bfloat16"]


class TrainableBackbone(nn.Module):
    """A network from photos, or from activations at a freeze boundary, to features.

    In the context of `folded`, it runs for inference. Elsewhere, it runs unfolded, for training. A copy, or a backbone
    that is loaded from a file, folds its network again.

    Args:
        network: The network, without a classifier.
        normalize: Module that turns photos into inputs of the network; None where these are activations.
        precision: Precision of matrix products in `folded`, by autocast.
        batch_norm: `frozen` to train with the running statistics of batch norm, or `trained` to train with those of
            each batch, which update the running ones.
        dropout: Whether dropout and other random layers are on in training. The outermost module is always in
            evaluation mode, without random operations or auxiliary outputs in its own `forward`.

    Raises:
        UserError: `batch_norm` is `trained`, but the network has no batch norm.
    """

    def __init__(
        self,
        network: nn.Module,
        normalize: nn.Module | None = None,
        precision: Precision = "float32",
        batch_norm: BatchNorm = "frozen",
        dropout: bool = False,
    ) -> None:
        super().__init__()
        self.network = network
        self.normalize = normalize
        self.precision = precision
        self.batch_norm = batch_norm
        self.dropout = dropout
        if batch_norm == "trained" and not any(isinstance(module, _BatchNorm) for module in network.modules()):
            raise UserError("batch_norm: trained is given, but the trained part has no batch norm; leave it out")
        self._folded: FoldedNetwork | None = None
        self._is_folded = False
        self.train()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the folded network, which is built again."""
        return {**self.__dict__, "_folded": None, "_is_folded": False}

    def train(self, mode: bool = True) -> TrainableBackbone:
        """Set evaluation mode, or the training modes that the options define."""
        super().train(False)
        self.training = mode
        for module in self.network.modules() if mode else ():
            if module is not self.network:
                is_norm = isinstance(module, _BatchNorm)
                module.training = self.batch_norm == "trained" if is_norm else self.dropout
        return self

    def forward(self, inputs: Tensor) -> Tensor:
        """Compute features.

        Args:
            inputs: Prepared photos, uint8 `[samples, 3, height, width]`; or activations, `[samples, ...]`.

        Returns:
            `[samples, features]`.
        """
        return self._evaluate(inputs) if self._is_folded else self._run(self.network, inputs)

    def _run(self, network: nn.Module, inputs: Tensor) -> Tensor:
        if self.normalize is not None:
            values: Tensor = self.normalize(inputs)
        elif torch.is_autocast_enabled(inputs.device.type):
            # The network may change shared inputs in place.
            values = inputs.clone()
        else:
            values = inputs.to(torch.float32, copy=True)
        if values.dim() == 4:
            values = values.contiguous(memory_format=torch.channels_last)
        features: Tensor = network(values)
        return features

    @contextmanager
    def folded(self) -> Iterator[None]:
        """Run the network for inference in this context, without gradients, with the weights that it has on entry.

        Batch norm is folded into convolutions, and dropout is off. If the features of the first sample differ after
        folding, the network runs unfolded.
        """
        mode, self._is_folded = self.training, True
        self.eval()
        try:
            with torch.inference_mode():
                self._fold().refresh()
                yield
        finally:
            self._is_folded = False
            self.train(mode)

    def _fold(self) -> FoldedNetwork:
        if self._folded is None or not self._folded.fits(self.network):
            self._folded = FoldedNetwork(self.network, getattr(torch, self.precision))
        return self._folded

    def _evaluate(self, inputs: Tensor) -> Tensor:
        assert self._folded is not None
        if not self._folded.is_verified:
            self._folded.verify(self.network, self._run, inputs[:1])
        # If training uses autocast, too, its cache of cast weights would outlive their updates.
        is_bfloat16 = self.precision == "bfloat16"
        with torch.autocast(inputs.device.type, torch.bfloat16, enabled=is_bfloat16, cache_enabled=False):
            return self._run(self._folded.module, inputs).float()


@contextmanager
def folded(module: nn.Module) -> Iterator[None]:
    """Run every trainable backbone of a module for inference in this context, without gradients.

    Args:
        module: A method, a backbone, or another module that may contain some.
    """
    with torch.no_grad(), ExitStack() as stack:
        for backbone in module.modules():
            if isinstance(backbone, TrainableBackbone):
                stack.enter_context(backbone.folded())
        yield
