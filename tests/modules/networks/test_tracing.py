"""The graph of a forward pass gives what the network gives."""

import torch
from torch import Tensor, nn
from torch.fx import GraphModule

from headstart.modules.networks.folding import trace


class KeywordOnly(nn.Module):
    def forward(self, inputs: Tensor, shift: float = 1.0, *, scale: float = 2.0) -> Tensor:
        return inputs * scale + shift


def test_further_arguments_are_as_by_default() -> None:
    graph = trace(KeywordOnly())
    assert len(graph.find_nodes(op="placeholder")) == 1
    assert torch.equal(GraphModule(nn.Module(), graph)(torch.arange(3.0)), torch.tensor([1.0, 3.0, 5.0]))
