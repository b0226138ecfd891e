"""Products of the samples seen against those of all samples at once."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from headstart.modules.methods import samples_seen
from headstart.modules.methods.seen_products import SeenProducts
from headstart.tests.material.streams import batches, make_start, random_samples


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("gathered", [1, 2**24], ids=["each ordering by itself", "all at once"])
def test_products_are_those_of_unit_vectors(shared: bool, gathered: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples_seen, "GATHERED", gathered)
    inputs, labels = random_samples(orderings=3, samples=11, features=6)
    inputs[1, 4] = 0
    start = make_start(inputs)
    pairs = SeenProducts(start if shared else replace(start, samples=None))
    for part in batches(inputs, labels, 4):
        came = list(pairs.append(*part))
    unit = functional.normalize(inputs, dim=-1)
    torch.testing.assert_close(pairs.products, unit @ unit.mT)
    assert torch.equal(torch.cat([samples for _, samples in came]), inputs)
    torch.testing.assert_close(torch.cat([pairs.gather(group) for group, _ in came]), unit)
    torch.testing.assert_close(inputs / pairs.norms[..., None], unit)


def test_products_are_complete_when_a_group_comes() -> None:
    inputs, labels = random_samples(orderings=2, samples=7, features=5)
    pairs = SeenProducts(make_start(inputs))
    unit = functional.normalize(inputs, dim=-1)
    for end, part in zip((3, 6, 7), batches(inputs, labels, 3), strict=True):
        for group, _ in pairs.append(*part):
            expected: Tensor = unit[group, :end] @ unit[group, :end].mT
            torch.testing.assert_close(pairs.products[group], expected)


def test_memory_follows_what_was_seen() -> None:
    inputs, labels = random_samples(orderings=2, samples=20, features=64)
    pairs = SeenProducts(replace(make_start(inputs), max_samples=500))
    for part in batches(inputs, labels, 1):
        list(pairs.append(*part))
    assert max(buffer.numel() for buffer in pairs.buffers()) == 2 * 32 * 32
