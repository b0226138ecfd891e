"""Both streams feed the same orderings in batches, and refuse a backbone that does not fit."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from headstart.datamodules.feature_stream import FeatureStream
from headstart.datamodules.orderings import balanced_ordering, sample_ordering, sample_validation
from headstart.datamodules.photo_stream import PhotoStream
from headstart.datamodules.sample_stream import SampleStream
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.output.errors import UserError

SetUp = Callable[..., SampleStream]
OWN = f"{__name__}.Own"


def fed(stream: SampleStream) -> tuple[Tensor, Tensor]:
    """Return all that the stream feeds, `[orderings, samples, ...]`."""
    inputs, labels, indices = (torch.cat(parts, 1) for parts in zip(*stream.train_dataloader(), strict=True))
    assert torch.equal(inputs, stream.train_inputs[indices])
    return inputs, labels


@pytest.mark.parametrize(("batch_size", "sizes"), [(1, [1] * 20), (3, [3] * 6 + [2]), (64, [20])])
def test_stream_is_the_first_samples_of_every_ordering(set_up: SetUp, batch_size: int, sizes: list[int]) -> None:
    stream = set_up(FeatureStream, orderings=3, first_ordering=2, batch_size=batch_size, seed=5)
    assert [labels.shape[1] for _, labels, _ in stream.train_dataloader()] == sizes
    assert len(stream.train_dataloader()) == len(sizes)
    inputs, labels = fed(stream)
    assert inputs.shape[:2] == labels.shape == (3, 20)
    for row, ordering in enumerate((2, 3, 4)):
        indices = sample_ordering(24, ordering, seed=5)[:20]
        assert torch.equal(inputs[row], stream.train_inputs[indices])
        assert torch.equal(labels[row], stream.train_labels[indices])


def test_balanced_stream_ends_when_a_class_runs_out(
    set_up: SetUp, photo_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    smallest = sorted((photo_folder / "train").iterdir())[1]
    for photo in sorted(smallest.iterdir())[:5]:
        photo.unlink()
    stream = set_up(
        FeatureStream, orderings=2, first_ordering=1, batch_size=4, max_samples=500, order="balanced", seed=5
    )
    assert f"end after 14 samples, when the class {smallest.name} runs out" in capsys.readouterr().out
    assert stream.max_samples == stream.start().max_samples == stream.describe()["max_samples"] == 14

    _, labels = fed(stream)
    assert labels.reshape(2, 7, 2).sort().values.tolist() == [[[0, 1]] * 7] * 2
    chosen = [balanced_ordering(stream.train_labels.numpy(), ordering, seed=5) for ordering in (1, 2)]
    assert torch.equal(labels, stream.train_labels[np.array(chosen)])


def test_start_is_drawn_by_the_seed_alone(set_up: SetUp) -> None:
    start = set_up(FeatureStream, orderings=4, seed=1).start()
    again = set_up(FeatureStream, orderings=2, first_ordering=3, batch_size=5, max_samples=11, seed=1).start()
    other = set_up(FeatureStream, orderings=4, seed=2).start()
    for ours, same, different in zip(start.heads(), again.heads(), other.heads(), strict=True):
        assert torch.equal(ours[3:], same[:1])
        assert not torch.equal(ours, different)
    assert (start.features, start.classes, start.orderings, start.max_samples) == (1280, 2, 4, 20)
    assert start.heads()[0].abs().max() <= 1280**-0.5


def test_validation_part(set_up: SetUp, photo_folder: Path) -> None:
    whole = set_up(FeatureStream, orderings=1, seed=3)
    part = set_up(FeatureStream, orderings=1, seed=3, validation_size=7)
    indices = sample_validation(whole.validation_labels.numpy(), 7, seed=3)
    assert torch.equal(part.validation_inputs, whole.validation_inputs[indices])
    assert torch.equal(part.validation_labels, whole.validation_labels[indices])
    assert [stream.decisive()["validation_size"] for stream in (part, whole)] == [7, 12]
    # Unreadable photos leave it smaller.
    (photo_folder / "validation" / f"dark/{indices[0]}.jpg").write_bytes(b"damaged")
    smaller = set_up(FeatureStream, orderings=1, seed=3, validation_size=7, on_bad_image="skip")
    assert torch.equal(smaller.validation_inputs, part.validation_inputs[1:])
    assert smaller.decisive()["validation_size"] == 6


def test_samples_are_moved_to_the_device_once_where_they_fit(
    set_up: SetUp, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = set_up(PhotoStream, orderings=1)
    monkeypatch.setattr(PhotoStream, "device", torch.device("meta"))
    for spare, device in ((100, "cpu"), (1e9, "meta")):
        monkeypatch.setattr("headstart.datamodules.photo_data._spare_bytes", lambda device, spare=spare: spare)
        stream.move_samples(stream.device)
        assert ("every batch is copied" in capsys.readouterr().out) == (device == "cpu")
        assert {str(part.device) for batch in stream.train_dataloader() for part in batch} == {device}
        assert {str(part.device) for whole in stream.val_dataloader() for chunk in whole for part in chunk} == {device}


@pytest.mark.slow
def test_streams_of_other_contents_have_other_digests(set_up: SetUp, photo_folder: Path) -> None:
    identity = set_up(FeatureStream, orderings=1).decisive()
    same = ({"orderings": 3}, {"first_ordering": 2}, {"max_samples": 10}, {"num_workers": 0})
    assert all(set_up(FeatureStream, **{"orderings": 1, **change}).decisive() == identity for change in same)
    other = ({"batch_size": 2}, {"seed": 1}, {"validation_size": 8}, {"max_samples": 19, "batch_size": 2})
    identities = [set_up(FeatureStream, **{"orderings": 1, **change}).decisive() for change in other]
    identities.append(set_up(PhotoStream, orderings=1).decisive())
    photo = next((photo_folder / "train" / "dark").iterdir())
    photo.rename(photo.with_name("renamed.jpg"))
    identities.append(set_up(FeatureStream, orderings=1).decisive())
    (photo_folder / "validation" / "dark" / "new.jpg").write_bytes(photo.with_name("renamed.jpg").read_bytes() + b"end")
    identities.append(set_up(FeatureStream, orderings=1).decisive())
    assert len({json.dumps(one, sort_keys=True) for one in (identity, *identities)}) == 1 + len(identities)


class Own(nn.Module):
    """Gives eight features, unless it is told to do something else."""

    def __init__(self, does: str = "", width: int = 8) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 8, 5)
        self.num_features = width
        self.does = does

    def forward(self, images: Tensor) -> object:
        """Return the requested output."""
        if self.does == "fail":
            raise KeyError("of its own")
        maps = self.convolution(images)
        return {"maps": maps, "tuple": (maps,)}.get(self.does, maps.mean((2, 3)))


def test_a_backbone_that_does_not_fit(set_up: SetUp) -> None:
    cases: list[tuple[str, dict[str, Any], int, str]] = [
        ("timm/vit_tiny_patch16_224", {"depth": 1}, 64, "preprocessing: timm/vit\\w+ cannot take .*Assertion"),
        (OWN, {}, 2, "name: .*Own cannot take pictures of 2 x 2 pixels"),
        (OWN, {"does": "fail"}, 32, "name: .*Own cannot take .*KeyError: 'of its own'"),
        (OWN, {"does": "maps"}, 32, r"name: .*Own returns \[2, 8, 28, 28\] for two pictures, .* \[2, 8\]"),
        (OWN, {"does": "tuple"}, 32, "name: .*Own returns a tuple for two pictures"),
        (OWN, {"width": 9}, 32, r"name: .*Own returns \[2, 8\] for two pictures, .* \[2, 9\]"),
    ]
    for name, arguments, crop, message in cases:
        backbone = BackboneSpec(name, "random", arguments, Preprocessing(64, crop))
        with pytest.raises(UserError, match=rf"^data\.backbone\.{message}"):
            set_up(FeatureStream, orderings=1, backbone=backbone)
