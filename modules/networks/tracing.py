"""The graph of a network's forward pass."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from torch import nn
from torch.fx import Graph, Node, Tracer


def trace(network: nn.Module, is_leaf: Callable[[nn.Module, str], bool] | None = None) -> Graph:
    """Write down what a network does with its first argument, the others being as by default.

    Args:
        network: The network, in the mode that it is to run in.
        is_leaf: Tells, from a module and its path, whether it stands in the graph as it is; by default layers of torch
            do, and what inherits from its convolutions, linear layers and batch norm.

    Returns:
        The graph, with one placeholder.

    Raises:
        Exception: Its code cannot be traced, which ends in errors of many unrelated kinds.
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
        # What checks that it is as by default.
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
