"""Activations come out of rows of bytes as they went in."""

import numpy as np
import pytest
import torch

from headstart.datamodules.activation_rows import notes_of, pack, unpack

LAYOUTS = [torch.contiguous_format, torch.channels_last]


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(5, 3, 3), (4, 7), (9,)])
def test_nothing_is_lost(shape: tuple[int, ...], precision: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    activations = torch.randn(6, *shape, generator=generator).to(precision)
    thumbnails = torch.randn(6, 64, generator=generator)
    for layout in LAYOUTS if len(shape) == 3 else LAYOUTS[:1]:
        rows = pack(activations.contiguous(memory_format=layout), thumbnails)
        assert rows.shape == (6, 256 + activations[0].nbytes)
        unpacked, small = unpack(rows, notes_of(activations))
        assert unpacked.dtype == precision
        assert torch.equal(unpacked, activations)
        assert torch.equal(small, thumbnails)


def test_activations_are_not_copied() -> None:
    activations = torch.zeros(2, 4, 3, 3, dtype=torch.bfloat16)
    rows = pack(activations, torch.zeros(2, 64)).numpy()
    unpacked, _ = unpack(torch.from_numpy(rows), notes_of(activations))
    unpacked[1, 2, 0, 1] = 1.0
    # The second channel-last pixel, the third channel of four, in little-endian bfloat16.
    assert rows[1, 256 + 2 * (4 + 2) :][:2].tolist() == [0x80, 0x3F]
    assert np.count_nonzero(rows) == 2
