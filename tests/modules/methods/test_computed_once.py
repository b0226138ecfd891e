"""Values are computed once for each tensor, and held as long as it exists."""

import torch

from headstart.modules.methods.computed_once import ComputedOnce


def test_a_value_is_computed_once_for_each_tensor() -> None:
    computed, inputs = ComputedOnce(), torch.ones(2)
    first = computed.of(inputs, lambda: 3 * inputs)
    assert computed.of(inputs, lambda: 4 * inputs) is first
    # A copy is another tensor, whatever it holds.
    assert torch.equal(computed.of(inputs.clone(), lambda: 4 * inputs), torch.full((2,), 4.0))


def test_a_value_ends_with_its_tensor() -> None:
    computed, inputs = ComputedOnce(), torch.ones(2)
    computed.of(inputs, lambda: torch.zeros(1))
    del inputs
    assert len(computed) == 0
