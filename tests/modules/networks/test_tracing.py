"""The graph of a forward pass gives what the network gives."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.fx import GraphModule

from headstart.modules.networks.tracing import trace


class KeywordOnly(nn.Module):
    def forward(self, inputs: Tensor, shift: float = 1.0, *, scale: float = 2.0) -> Tensor:
        return inputs * scale + shift


class Gathering(nn.Module):
    def forward(self, inputs: Tensor, **others: Any) -> Tensor:
        outputs: Tensor = inputs * others["scale"]
        return outputs


def test_further_arguments_are_as_by_default() -> None:
    graph = trace(KeywordOnly())
    assert len(graph.find_nodes(op="placeholder")) == 1
    assert torch.equal(GraphModule(nn.Module(), graph)(torch.arange(3.0)), torch.tensor([1.0, 3.0, 5.0]))


def test_an_output_that_depends_on_others_cannot_be_traced() -> None:
    with pytest.raises(ValueError, match="another argument"):
        trace(Gathering())
