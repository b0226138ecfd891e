"""The cut of a network before one of its modules: a stem that stays frozen, and a tail that is trained."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import torch
from torch import Tensor, nn
from torch.fx import Graph, GraphModule, Node
from torch.nn.modules.module import register_module_forward_hook

from headstart.modules.networks.backbone import Backbone
from headstart.modules.networks.folding import are_same, run_once, trace
from headstart.output.errors import UserError, reason_of


@dataclass(frozen=True)
class SplitBackbone:
    """A backbone in two parts, which share its weights.

    Attributes:
        stem: From photos to activations at the boundary.
        tail: From these activations to features. Its modules have the paths that they had in the backbone's network.
        shape: Shape of one photo's activations, `[channels, height, width]` or `[tokens, width]`.
        relief: The largest activation of the whole network, relative to that of the tail.
    """

    stem: Backbone
    tail: GraphModule
    shape: torch.Size
    relief: float


def cut(backbone: Backbone, boundary: str) -> SplitBackbone:
    """Cut a backbone before a module, the first one of the tail.

    Args:
        backbone: The backbone, which stays as it is.
        boundary: The module's path in its network, such as `features.14`.

    Returns:
        The two parts.

    Raises:
        UserError: There is no such module; it is not called exactly once; nothing comes before it; no weights come
            after it; more than one tensor crosses the boundary; or the network's code cannot be traced.
    """
    network = backbone.network
    modules = [path for path, _ in network.named_modules() if path]
    if boundary not in modules:
        close = "".join(get_close_matches(boundary, modules, n=1, cutoff=0.0))
        raise UserError(
            f"trainable_from: the network has no module {boundary!r}; the closest name is {close or 'none'}"
        )

    stem, tail = _split(network, boundary)
    if next(tail.parameters(), None) is None:
        raise UserError(f"trainable_from: there are no weights from {boundary!r} on; give an earlier module, or all")

    images = backbone.normalize(backbone.noise_photo()).contiguous(memory_format=torch.channels_last)
    whole, most = _run(backbone.network, images)
    activations, _ = _run(stem, images)
    if not activations.is_floating_point():
        raise UserError(
            f"trainable_from: the values that cross the boundary before {boundary!r} are {activations.dtype}, where "
            "floating-point activations are needed; give an earlier or later module, or all"
        )

    features, least = _run(tail, activations)
    if not are_same(features, whole):
        raise UserError(
            f"trainable_from: cut before {boundary!r}, the network returns other features than as a whole, or NaN; "
            "give all"
        )

    shape = activations.shape[1:]
    # A stem without weights knows no device.
    front = Backbone(stem, shape.numel(), None, backbone.preprocessing).to(backbone.device)
    return SplitBackbone(front, tail, shape, most / least)


def _split(network: nn.Module, boundary: str) -> tuple[GraphModule, GraphModule]:
    try:
        # Modules that do not hold the boundary are called as they are, whatever their code.
        graph = trace(network, lambda _, path: not boundary.startswith(f"{path}."))
    except Exception as error:  # tracing fails with errors of many unrelated kinds
        raise UserError(
            f"trainable_from: the code around {boundary!r} cannot be traced ({reason_of(error)}); give a module that "
            "is less deeply nested, or all"
        ) from error

    nodes = list(graph.nodes)
    calls = [index for index, node in enumerate(nodes) if node.op == "call_module" and node.target == boundary]
    if len(calls) != 1:
        raise UserError(
            f"trainable_from: module {boundary!r} is called {len(calls)} times in one forward pass; give one that is "
            "called once"
        )

    before, after = nodes[: calls[0]], nodes[calls[0] :]
    # Weights that the tail reads are not values that cross the boundary.
    used = [node for node in before if not node.users.keys().isdisjoint(after)]
    crossing = [node for node in used if node.op != "get_attr"]
    if len(crossing) != 1:
        raise UserError(
            f"trainable_from: {len(crossing)} values cross the boundary before {boundary!r}, where one tensor has to; "
            f"give {boundary.rpartition('.')[0] or 'another module'}, or all"
        )
    if crossing[0].op == "placeholder":
        raise UserError(f"trainable_from: nothing comes before {boundary!r}; give all, or a later module")

    weights = [node for node in used if node.op == "get_attr"]
    return _part(network, before, crossing[0]), _part(network, [*weights, *after], crossing[0], is_tail=True)


def _part(network: nn.Module, nodes: Sequence[Node], boundary: Node, is_tail: bool = False) -> GraphModule:
    """Build the stem, which ends with the value at the boundary, or the tail, which begins with it."""
    graph = Graph()
    copies = {boundary: graph.placeholder("activations")} if is_tail else {}
    for node in nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    if not is_tail:
        graph.output(copies[boundary])
    return GraphModule(network, graph).eval()


def _run(network: nn.Module, inputs: Tensor) -> tuple[Tensor, int]:
    """Run a network once; return its output, and the size of the largest output of its modules."""
    sizes = [1]

    def record_size(_module: nn.Module, _inputs: object, output: object) -> None:
        sizes.append(output.numel() if isinstance(output, Tensor) else 0)

    with register_module_forward_hook(record_size):
        return run_once(network, inputs), max(sizes)
