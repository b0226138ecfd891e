"""A network for fast inference, with the present weights of another one."""

import inspect
from collections import Counter
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.fx import Graph, GraphModule, Node, Tracer
from torch.fx.node import Target
from torch.nn.utils.fusion import fuse_conv_bn_weights

# timm's batch norm, whose children run after it.
NORM_AND_ACTIVATION = "BatchNormAct2d"
# Forward functions of layers that use their weights as torch's own do.
PLAIN = (nn.Conv2d.forward, nn.Linear.forward)
# Relative to the norm of the features; differences by rounding are a thousand times smaller.
SAME_WITHIN = 1e-3


class FoldedNetwork:
    """A network for inference with every batch norm folded into the convolution before it.

    Its other weights are those of the network itself. A network whose code cannot be traced runs as it is.

    Args:
        network: The network, in evaluation mode.
        precision: Precision of products under the autocast in which the network will run.

    Attributes:
        module: The module that runs.
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
        # Weights that are computed, such as low-rank updates, or rounded, are computed once for an evaluation.
        if norm or "weight" not in layer._parameters or layer.weight.dtype != precision:
            self._layers.append(_Layer(layer, norm, precision))
            module.set_submodule(str(node.target), self._layers[-1])
        if norm:
            module.set_submodule(str(following.target), nn.Sequential(*norm.children()))

    def refresh(self) -> None:
        """Update the folded weights from the weights and statistics of the network."""
        for layer in self._layers:
            layer.refresh()

    def verify(self, network: nn.Module, run: Callable[[nn.Module, Tensor], Tensor], inputs: Tensor) -> None:
        """Fall back to the network as it is where its features differ, since tracing cannot see all code.

        Args:
            network: The network.
            run: Computes features by a module.
            inputs: Inputs of one sample or more.
        """
        # Rounding would hide small differences.
        self._convert(torch.float32)
        with torch.autocast(inputs.device.type, enabled=False):
            folded, expected = (run_once(partial(run, module), inputs) for module in (self.module, network))
        if not are_same(folded, expected):
            self.module, self._layers = network, []
        self._convert(self._precision)
        self.is_verified = True

    def _convert(self, precision: torch.dtype) -> None:
        for layer in self._layers:
            layer.to(precision).refresh()

    def fits(self, network: nn.Module) -> bool:
        """Return whether the network still consists of the same modules and tensors.

        Args:
            network: The network.
        """
        parts = _parts(network)
        return len(parts) == len(self._parts) and all(a is b for a, b in zip(parts, self._parts, strict=True))


@torch.no_grad()
def run_once(network: Callable[[Tensor], Tensor], inputs: Tensor) -> Tensor:
    """Run a network on a copy of the inputs, and leave the generators as they are.

    Args:
        network: The network.
        inputs: Its inputs.

    Returns:
        Its output.
    """
    with torch.random.fork_rng([inputs.device] if inputs.device.type == "cuda" else []):
        return network(inputs.clone())


def are_same(features: Tensor, expected: Tensor) -> bool:
    """Return whether features are the same except for rounding; NaN never is.

    Args:
        features: The features.
        expected: The expected features.
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
    """Return whether calling a module does something else than its class's forward."""
    return bool(module._forward_hooks or module._forward_pre_hooks) or "forward" in vars(module)


class _Layer(nn.Module):
    """A convolution or linear layer, and the batch norm after it, as one layer with weights of its own.

    Args:
        layer: The layer, whose weights may be computed.
        norm: The batch norm that is folded into it.
        precision: Precision of the weights.
    """

    weight: Tensor
    bias: Tensor | None

    def __init__(self, layer: nn.Conv2d | nn.Linear, norm: nn.BatchNorm2d | None, precision: torch.dtype) -> None:
        super().__init__()
        # In a tuple, so that they do not become submodules.
        self._origin = layer, norm
        for name, value in zip(("weight", "bias"), self._compute(), strict=True):
            buffer = None if value is None else torch.empty_like(value, dtype=precision)
            self.register_buffer(name, buffer, persistent=False)

    def _compute(self) -> tuple[Tensor, Tensor | None]:
        layer, norm = self._origin
        if norm is None:
            return layer.weight, layer.bias
        assert norm.running_mean is not None
        assert norm.running_var is not None
        return fuse_conv_bn_weights(
            layer.weight, layer.bias, norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias
        )

    def refresh(self) -> None:
        """Update the weights from those of the layer and the statistics of the batch norm."""
        for buffer, value in zip((self.weight, self.bias), self._compute(), strict=True):
            if buffer is not None and value is not None:
                buffer.copy_(value)

    def forward(self, inputs: Tensor) -> Tensor:
        """Apply the layer."""
        layer, _ = self._origin
        if isinstance(layer, nn.Conv2d):
            convolved: Tensor = layer._conv_forward(inputs, self.weight, self.bias)
            return convolved
        return nn.functional.linear(inputs, self.weight, self.bias)


def trace(network: nn.Module, is_leaf: Callable[[nn.Module, str], bool] | None = None) -> Graph:
    """Trace a network as a function of its first argument; others have their default values.

    Args:
        network: The network, in the mode that it is to run in.
        is_leaf: Whether a module with a path is one node of the graph. By default, layers of torch are, and so are
            classes that inherit from its convolutions, linear layers and batch norm.

    Returns:
        The graph, with one placeholder.

    Raises:
        Exception: Its code cannot be traced; the errors are of many unrelated kinds.
    """
    tracer = _Tracer()
    tracer.is_leaf = is_leaf
    defaults = {
        name: parameter.default
        for name, parameter in list(inspect.signature(network.forward).parameters.items())[1:]
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        and parameter.default is not parameter.empty
    }
    graph = tracer.trace(network, defaults or None)
    for argument in graph.find_nodes(op="placeholder")[1:]:
        # These nodes only check that the argument has its default value.
        _erase(graph, argument)
    return graph


def _erase(graph: Graph, node: Node) -> None:
    if node.op == "output":
        raise ValueError("the output depends on another argument than the first")
    for user in list(node.users):
        _erase(graph, user)
    graph.erase_node(node)


class _Tracer(Tracer):
    is_leaf: Callable[[nn.Module, str], bool] | None = None

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        if self.is_leaf is not None:
            return self.is_leaf(m, module_qualified_name)
        layers = nn.Conv2d, nn.Linear, nn.BatchNorm2d
        return isinstance(m, layers) or super().is_leaf_module(m, module_qualified_name)
