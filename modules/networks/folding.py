"""A network as it runs fastest for inference, with the weights that another one has at the moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.fx import GraphModule, Node
from torch.fx.node import Target
from torch.nn.utils.fusion import fuse_conv_bn_weights

from headstart.modules.networks.tracing import trace

# Batch norm of timm, whose children run behind it.
NORM_AND_ACTIVATION = "BatchNormAct2d"
# Of layers that do with their weights what torch's own do.
PLAIN = (nn.Conv2d.forward, nn.Linear.forward)
# Relative to the norm of the features; what rounding does is a thousand times less.
SAME_WITHIN = 1e-3


class FoldedNetwork:
    """A network for inference with every batch norm folded into the convolution before it.

    Its other weights are those of the network itself. A network whose code cannot be traced runs as it is.

    Args:
        network: The network, in evaluation mode.
        precision: Of products, which autocast is meant to compute.

    Attributes:
        module: What runs.
        is_verified: Whether `verify` was called.
    """

    def __init__(self, network: nn.Module, precision: torch.dtype) -> None:
        self._parts = _parts(network)
        self._precision = precision
        self._layers: list[_Layer] = []
        self.is_verified = False
        self.module = network
        try:
            graph = trace(network)
        except Exception:  # tracing fails with errors of many unrelated kinds
            return
        self.module = GraphModule(network, graph).eval()
        called = Counter(node.target for node in graph.find_nodes(op="call_module"))
        for node in graph.find_nodes(op="call_module"):
            if called[node.target] == 1:
                self._fold(self.module, node, precision, called)

    def _fold(self, module: GraphModule, node: Node, precision: torch.dtype, called: Counter[Target]) -> None:
        layer = module.get_submodule(str(node.target))
        if not isinstance(layer, nn.Conv2d | nn.Linear) or type(layer).forward not in PLAIN or _is_altered(layer):
            return
        norm, following = None, next(iter(node.users))
        is_sole = len(node.users) == 1 and following.op == "call_module" and called[following.target] == 1
        if isinstance(layer, nn.Conv2d) and is_sole:
            norm = _as_foldable(module.get_submodule(str(following.target)))
        # What is computed, as low-rank updates are, or rounded, is so once in an evaluation.
        if norm or "weight" not in layer._parameters or layer.weight.dtype != precision:
            self._layers.append(_Layer(layer, norm, precision))
            module.set_submodule(str(node.target), self._layers[-1])
        if norm:
            module.set_submodule(str(following.target), nn.Sequential(*norm.children()))

    def refresh(self) -> None:
        """Take the weights and statistics of the network as they are."""
        for layer in self._layers:
            layer.refresh()

    def verify(self, network: nn.Module, run: Callable[[nn.Module, Tensor], Tensor], inputs: Tensor) -> None:
        """Let the network run as it is from now on where it gives other features, since tracing cannot see all code.

        Args:
            network: The network.
            run: Computes features by a module.
            inputs: Of one sample or more.
        """
        # Rounding would hide small differences.
        self._convert(torch.float32)
        with torch.autocast(inputs.device.type, enabled=False):
            given, expected = (run_once(partial(run, each), inputs) for each in (self.module, network))
        if not are_same(given, expected):
            self.module, self._layers = network, []
        self._convert(self._precision)
        self.is_verified = True

    def _convert(self, precision: torch.dtype) -> None:
        for layer in self._layers:
            layer.to(precision).refresh()

    def fits(self, network: nn.Module) -> bool:
        """Tell whether the network still consists of the modules and tensors that it had.

        Args:
            network: The network.
        """
        parts = _parts(network)
        return len(parts) == len(self._parts) and all(a is b for a, b in zip(parts, self._parts, strict=True))


@torch.no_grad()
def run_once(network: Callable[[Tensor], Tensor], inputs: Tensor) -> Tensor:
    """Run a network, with the inputs and the generators left as they are.

    Args:
        network: The network.
        inputs: What it takes.

    Returns:
        Its output.
    """
    with torch.random.fork_rng([inputs.device] if inputs.device.type == "cuda" else []):
        return network(inputs.clone())


def are_same(features: Tensor, expected: Tensor) -> bool:
    """Tell whether features are the same but for rounding; those that are not numbers are not.

    Args:
        features: The features.
        expected: What they ought to be.
    """
    return features.shape == expected.shape and bool((features - expected).norm() <= SAME_WITHIN * expected.norm())


def _parts(network: nn.Module) -> list[object]:
    return [*network.modules(), *network.parameters(), *network.buffers()]


def _as_foldable(module: nn.Module) -> nn.BatchNorm2d | None:
    if not isinstance(module, nn.BatchNorm2d) or module.running_mean is None or _is_altered(module):
        return None
    is_plain = type(module).forward is nn.BatchNorm2d.forward
    return module if is_plain or type(module).__name__ == NORM_AND_ACTIVATION else None


def _is_altered(module: nn.Module) -> bool:
    """Tell whether calling a module does something else than its class's forward."""
    return bool(module._forward_hooks or module._forward_pre_hooks) or "forward" in vars(module)


class _Layer(nn.Module):
    """A convolution or linear layer, and the batch norm behind it, as one layer with weights of its own.

    Args:
        layer: The layer, whose weights may be computed.
        norm: What is folded into it.
        precision: Of the weights.
    """

    weight: Tensor
    bias: Tensor | None

    def __init__(self, layer: nn.Conv2d | nn.Linear, norm: nn.BatchNorm2d | None, precision: torch.dtype) -> None:
        super().__init__()
        # No modules of this one.
        self._origin = layer, norm
        for name, value in zip(("weight", "bias"), self._now(), strict=True):
            kept = None if value is None else torch.empty_like(value, dtype=precision)
            self.register_buffer(name, kept, persistent=False)

    def _now(self) -> tuple[Tensor, Tensor | None]:
        layer, norm = self._origin
        if norm is None:
            return layer.weight, layer.bias
        assert norm.running_mean is not None
        assert norm.running_var is not None
        return fuse_conv_bn_weights(
            layer.weight, layer.bias, norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias
        )

    def refresh(self) -> None:
        """Take the weights and statistics as they are."""
        for kept, value in zip((self.weight, self.bias), self._now(), strict=True):
            if kept is not None and value is not None:
                kept.copy_(value)

    def forward(self, inputs: Tensor) -> Tensor:
        """Apply the layer."""
        layer, _ = self._origin
        if isinstance(layer, nn.Conv2d):
            convolved: Tensor = layer._conv_forward(inputs, self.weight, self.bias)
            return convolved
        return nn.functional.linear(inputs, self.weight, self.bias)
