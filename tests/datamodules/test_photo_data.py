"""Photos that are unreadable, too few or in both splits stop a stream by name, or are left out or kept and recorded."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch

from headstart.datamodules.feature_stream import FeatureStream
from headstart.datamodules.photo_stream import PhotoStream
from headstart.datamodules.sample_stream import SampleStream
from headstart.output.errors import UserError
from headstart.tests.material.photo_folders import refusal
from headstart.tests.material.prepared_pictures import stack

SetUp = Callable[..., SampleStream]


def test_more_than_there_is(set_up: SetUp) -> None:
    for option, number, words in (
        ("max_samples", 25, "25 requested, but there are 24 training photos"),
        ("validation_size", 13, "13 requested, but there are 12 validation photos"),
        ("validation_size", 1, "1 photos cannot contain one of each of the 2 classes; give 2 or more"),
    ):
        message = refusal(partial(set_up, FeatureStream, orderings=1, **{option: number}))
        assert message == f"data.{option}: {words}"
    set_up(FeatureStream, orderings=1, max_samples=24, validation_size=12)


def test_unreadable_photos_stop_the_run_by_name_or_are_left_out(set_up: SetUp, photo_folder: Path) -> None:
    names = ["train/dark/2.jpg", "train/light/11.jpg", "validation/dark/0.jpg"]
    for name in names:
        (photo_folder / name).write_bytes(b"damaged")
    for _ in range(2):  # they are computed, then found in the store
        message = refusal(lambda: set_up(PhotoStream, orderings=1))
        assert "2 of 24 training photos cannot be decoded" in message
        assert all(name in message for name in names[:2])
        stream = set_up(PhotoStream, orderings=1, on_bad_image="skip")
        assert list(stream.describe()["unreadable_photos"]) == names
        assert stream.train_labels.tolist() == [0] * 11 + [1] * 11
        assert len(stream.validation_labels) == len(stream.validation_inputs) == 11
        whole = stream.photos.train()
        readable = [i for i, name in enumerate(whole.names) if name not in names]
        pixels = stack([stream.backbone.preprocessing.prepare(whole.read(i)) for i in readable])
        assert torch.equal(stream.train_inputs, pixels)


def test_a_class_without_a_readable_photo(set_up: SetUp, photo_folder: Path) -> None:
    for path in (photo_folder / "validation" / "dark").iterdir():
        path.write_bytes(b"damaged")
    with pytest.raises(UserError, match="none of the validation photos of class dark can be decoded"):
        set_up(FeatureStream, orderings=1, on_bad_image="skip")


def test_files_that_are_no_photos_are_counted(
    set_up: SetUp, photo_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("train/dark/a.svg", "train/dark/b.svg", "validation/light/c.svg"):
        (photo_folder / name).touch()
    (photo_folder / "train" / "light" / "lost.jpg").symlink_to("nowhere")
    stream = set_up(FeatureStream)
    assert "data.photos: 4 files left out: .svg (3), dangling link (1); " in capsys.readouterr().out
    assert stream.environment() == {"files_left_out": {".svg": 3, "dangling link": 1}}
