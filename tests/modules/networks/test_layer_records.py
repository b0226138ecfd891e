"""Hooks read what passes a layer, and are gone afterwards."""

from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from headstart.modules.networks.embedding_strategy import Prefix
from headstart.modules.networks.layer_records import Record, recording

ROWS = torch.tensor([[1.0, 2.0]])


class Fail(nn.Module):
    """A layer that cannot be run."""

    def forward(self, rows: Tensor) -> Tensor:
        raise RuntimeError("no memory")


def record(path: str, side: Literal["output", "input"]) -> Record:
    return Record(path, side, None, None, Prefix(), len(ROWS))


def count_hooks(network: nn.Module) -> int:
    return sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in network.modules())


def test_both_sides_of_a_layer() -> None:
    network = nn.Sequential(nn.Hardtanh(0, 1), nn.ReLU())
    records = [record("0", "input"), record("0", "output"), record("", "output")]
    with recording(network, records):
        assert count_hooks(network) == 3
        network(ROWS)
    assert [each.rows.tolist() for each in records if each.rows is not None] == [[[1, 2]], [[1, 1]], [[1, 1]]]
    assert [each.calls for each in records] == [1, 1, 1]
    assert str(records[0]) == "the input is [n, 2] (2 columns)"
    assert not count_hooks(network)


def test_hooks_are_gone_after_an_exception() -> None:
    network = nn.Sequential(nn.ReLU(), Fail())
    records = [record("0", "output"), record("1", "output")]
    with pytest.raises(RuntimeError, match="no memory"), recording(network, records):
        network(ROWS)
    assert [each.calls for each in records] == [1, 0]
    assert not count_hooks(network)


def test_complex_numbers_are_no_embedding() -> None:
    network = nn.Identity()
    records = [record("", "output")]
    with recording(network, records):
        network(ROWS.to(torch.complex64))
    assert records[0].rows is None
    assert str(records[0]) == "the output is [n, 2] (complex numbers are no embedding)"
