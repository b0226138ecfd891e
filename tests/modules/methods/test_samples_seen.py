"""Copies of the samples seen, which lazy evaluation makes."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from headstart.modules.methods.samples_seen import SamplesSeen
from headstart.tests.material.streams import make_start, random_samples


@pytest.mark.parametrize("shared", [True, False], ids=["shared matrix", "features of its own"])
@pytest.mark.parametrize("seen_before", [0, 3])
def test_copies_share_what_was_seen_and_go_on_apart(shared: bool, seen_before: int) -> None:
    features, labels = random_samples(orderings=2, samples=8, features=4)
    indices = torch.arange(16).view(2, 8)
    start = make_start(features)
    seen = SamplesSeen(start if shared else replace(start, samples=None))
    for sample in range(seen_before):
        seen.append(features[:, [sample]], labels[:, [sample]], indices[:, [sample]])
    other = deepcopy(seen)
    assert other.matrix.data_ptr() == seen.matrix.data_ptr()
    before = list(range(seen_before))
    for numbers, one, sample in ((before.copy(), other, 7), (before.copy(), seen, 6)):
        for number in (sample, sample - 2):
            numbers.append(number)
            one.append(features[:, [number]], labels[:, [number]], indices[:, [number]])
        assert torch.equal(one.gather(slice(None)), features[:, numbers])
        assert torch.equal(one.labels, labels[:, numbers])
    assert torch.equal(other.gather(slice(None)), features[:, [*before, 7, 5]])
