"""The samples seen, by their positions."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from headstart.modules.methods import samples_seen
from headstart.modules.methods.samples_seen import SamplesSeen
from headstart.tests.material.streams import make_start, random_samples


@pytest.mark.parametrize("shared", [True, False], ids=["shared matrix", "features of its own"])
def test_samples_are_kept_in_order(shared: bool) -> None:
    features, labels = random_samples(orderings=3, samples=5, features=4)
    start = make_start(features)
    seen = SamplesSeen(start if shared else replace(start, samples=None))
    indices = torch.arange(15).view(3, 5)
    for part in range(0, 5, 2):
        seen.append(features[:, part : part + 2], labels[:, part : part + 2], indices[:, part : part + 2])
    assert seen.count == 5
    assert torch.equal(seen.labels, labels)
    assert torch.equal(seen.features(torch.tensor([3, 0])), features[:, [3, 0]])
    assert torch.equal(seen.gather(slice(1, 3)), features[1:])
    assert (seen.matrix is start.samples) == shared


def test_inputs_of_a_backbone_are_kept_as_they_come() -> None:
    photos = torch.randint(256, (2, 5, 3, 4, 4), dtype=torch.uint8)
    seen = SamplesSeen(replace(make_start(torch.zeros(2, 5, 4)), samples=None))
    for part in range(0, 5, 2):
        labels = torch.zeros(2, min(2, 5 - part), dtype=torch.int64)
        seen.append(photos[:, part : part + 2], labels, labels)
    drawn = seen.features(torch.tensor([4, 0, 2]))
    assert drawn.dtype == torch.uint8
    assert torch.equal(drawn, photos[:, [4, 0, 2]])


@pytest.mark.parametrize("shared", [True, False], ids=["shared matrix", "features of its own"])
@pytest.mark.parametrize("seen_before", [0, 1, 3, 4])
def test_copies_share_what_was_seen_and_go_on_apart(shared: bool, seen_before: int) -> None:
    features, labels = random_samples(orderings=2, samples=8, features=4)
    indices = torch.arange(16).view(2, 8)
    start = make_start(features)
    seen = SamplesSeen(start if shared else replace(start, samples=None))
    for sample in range(seen_before):
        seen.append(features[:, [sample]], labels[:, [sample]], indices[:, [sample]])
    other = deepcopy(seen)
    assert other.matrix.data_ptr() == seen.matrix.data_ptr()
    chosen = list(range(seen_before))
    for own, one, sample in ((chosen.copy(), other, 7), (chosen.copy(), seen, 6)):
        for number in (sample, sample - 2):
            own.append(number)
            one.append(features[:, [number]], labels[:, [number]], indices[:, [number]])
        assert torch.equal(one.gather(slice(None)), features[:, own])
        assert torch.equal(one.labels, labels[:, own])
    assert torch.equal(other.gather(slice(None)), features[:, [*chosen, 7, 5]])


def test_groups_part_all_orderings_by_what_they_gather(monkeypatch: pytest.MonkeyPatch) -> None:
    features, labels = random_samples(orderings=7, samples=5, features=4)
    seen = SamplesSeen(make_start(features))
    seen.append(features, labels, torch.arange(35).view(7, 5))
    for room, sizes in ((10**6, [7]), (2 * 5 * 6 * 4, [2, 2, 2, 1]), (1, [1] * 7)):
        monkeypatch.setattr(samples_seen, "GATHERED", room)
        groups = list(seen.groups(values=2))
        assert [len(seen.gather(group)) for group in groups] == sizes
        assert torch.equal(torch.cat([seen.gather(group) for group in groups]), features)


def test_memory_follows_what_was_seen_and_checkpoints_hold_nothing() -> None:
    features, labels = random_samples(orderings=1, samples=20, features=4)
    seen = SamplesSeen(replace(make_start(features), max_samples=500))
    seen.append(features, labels, torch.arange(20)[None])
    assert all(buffer.numel() < 2 * 20 for buffer in seen.buffers())
    assert not seen.state_dict()
