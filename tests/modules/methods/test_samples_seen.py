"""The buffer of all samples seen."""

from __future__ import annotations

import torch

from modules.methods.samples_seen import SamplesSeen


def test_batches_are_kept_in_order() -> None:
    features, labels = torch.randn(3, 5, 4), torch.randint(2, (3, 5))
    seen = SamplesSeen(orderings=3, max_samples=6, features=4)
    for part, part_labels in zip(features.split(2, 1), labels.split(2, 1), strict=True):
        seen.append(part, part_labels)
    assert seen.count == 5
    assert torch.equal(seen.features, features)
    assert torch.equal(seen.labels, labels)


def test_reading_copies_nothing_and_checkpoints_hold_nothing() -> None:
    seen = SamplesSeen(orderings=1, max_samples=6, features=4)
    seen.append(torch.zeros(1, 1, 4), torch.zeros(1, 1, dtype=torch.int64))
    first = seen.features.data_ptr()
    seen.append(torch.ones(1, 1, 4), torch.ones(1, 1, dtype=torch.int64))
    assert seen.features.data_ptr() == first
    assert not seen.state_dict()


def test_moves_with_its_module() -> None:
    seen = SamplesSeen(orderings=1, max_samples=6, features=4).to("meta")
    assert seen.features.device.type == seen.labels.device.type == "meta"
