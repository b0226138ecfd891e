"""Room in tensors for what is still to come."""

import pytest
import torch

from headstart.modules.methods.room import with_room


@pytest.mark.parametrize(
    ("length", "needed", "most", "wanted"),
    [(0, 1, 100, 1), (4, 4, 100, 4), (4, 5, 100, 8), (4, 20, 100, 20), (60, 61, 100, 100), (4, 5, 4, 5)],
)
def test_room_is_doubled_up_to_the_most(length: int, needed: int, most: int, wanted: int) -> None:
    values = torch.randint(9, (2, length, 3, length)).double()
    roomy = with_room(values, [1, 3], needed, most)
    assert roomy.shape == (2, wanted, 3, wanted)
    assert torch.equal(roomy[:, :length, :, :length], values)
    assert roomy.sum() == pytest.approx(values.sum())
    assert (roomy is values) == (length >= needed)
