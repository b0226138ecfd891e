"""Samples that are read when they are indexed are those of a tensor in memory, to the bit."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from headstart.datamodules import mapped_samples, sample_stream
from headstart.datamodules.feature_stream import FeatureStream
from headstart.datamodules.mapped_samples import MappedSamples, Rows
from headstart.datamodules.photo_stream import PhotoStream
from headstart.datamodules.rows import find
from headstart.datamodules.sample_stream import SampleStream
from headstart.store.gathered_rows import GatheredRows

SetUp = Callable[..., SampleStream]


def first_columns(rows: Tensor) -> Tensor:
    return rows[:, :3]


@pytest.fixture(params=["consecutive", "scattered"])
def rows(request: pytest.FixtureRequest, tmp_path: Path) -> Rows:
    np.random.default_rng(0).random((50, 5), dtype=np.float32).tofile(tmp_path / "rows")
    mapped = np.memmap(tmp_path / "rows", np.float32, "c", shape=(50, 5))
    if request.param == "consecutive":
        return mapped
    order = np.random.default_rng(1).permutation(50)
    return GatheredRows([mapped[:30], mapped[30:]], order // 30, order % 30)


def test_indexing_reads_what_a_tensor_holds(rows: Rows) -> None:
    samples, loaded = MappedSamples(rows, first_columns), torch.from_numpy(np.array(rows[:]))[:, :3]
    assert (samples.shape, samples.nbytes, len(samples)) == (loaded.shape, loaded.nbytes, 50)
    for shape in ((7,), (4, 6), (0,), (2, 0)):
        indices = torch.randint(50, shape, generator=torch.Generator().manual_seed(0))
        assert torch.equal(samples[indices], loaded[indices])
    # A mask chooses samples that are read later.
    mask = torch.arange(50) % 3 > 0
    half = torch.arange(int(mask.sum())) % 2 == 0
    chosen = samples[mask][half]
    assert isinstance(chosen, MappedSamples)
    indices = torch.tensor([[3, 1, 3]])
    assert torch.equal(chosen[indices], loaded[mask][half][indices])


@pytest.fixture
def both(set_up: SetUp, photo_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[SampleStream]]:
    """Set up a stream with an unreadable photo twice: with samples in memory, and with mapped ones."""
    (photo_folder / "train" / "light" / "0.jpg").write_bytes(b"damaged")

    def make(kind: type[SampleStream], **options: Any) -> list[SampleStream]:
        loaded = set_up(kind, on_bad_image="skip", orderings=3, batch_size=3, **options)
        # Rows of a subset are scattered over the segment.
        monkeypatch.setattr(mapped_samples, "MAX_BYTES_IN_MEMORY", 0)
        monkeypatch.setattr(sample_stream, "find", partial(find, copied=0))
        mapped = set_up(kind, on_bad_image="skip", orderings=3, batch_size=3, **options)
        assert isinstance(loaded.train_inputs, Tensor)
        assert isinstance(mapped.train_inputs, MappedSamples)
        return [loaded, mapped]

    return make


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (FeatureStream, {}),
        (PhotoStream, {}),
        (PhotoStream, {"trainable_from": "features.14"}),
    ],
)
def test_mapped_samples_are_fed_as_those_in_memory(
    kind: type[SampleStream], options: dict[str, Any], both: Callable[..., list[SampleStream]]
) -> None:
    loaded, mapped = both(kind, **options)
    for expected, batch in zip(loaded.train_dataloader(), mapped.train_dataloader(), strict=True):
        assert all(map(torch.equal, expected, batch))
        # Results of convolutions depend on the layout.
        assert expected[0].stride() == batch[0].stride()
    assert loaded.decisive() == mapped.decisive()
    assert torch.equal(loaded.validation_inputs, mapped.validation_inputs)
