"""The graph of a network's forward pass."""

import inspect
from collections.abc import Callable

from torch import nn
from torch.fx import Graph, Node, Tracer


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
