"""Both streams feed the same orderings in batches, and refuse what cannot be fed."""

import errno
import json
from collections.abc import Callable
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from headstart.datamodules.feature_stream import FeatureStream
from headstart.datamodules.orderings import sample_ordering, sample_validation
from headstart.datamodules.photo_stream import PhotoStream
from headstart.datamodules.photos.class_folders import ClassFolders
from headstart.datamodules.sample_stream import SampleStream
from headstart.modules.networks.backbone import BackboneSpec
from headstart.modules.networks.build import build
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.output.errors import UserError

SetUp = Callable[..., SampleStream]
STREAMS = [FeatureStream, PhotoStream]
OWN = f"{__name__}.Own"


def fed(stream: SampleStream) -> tuple[Tensor, Tensor]:
    """Return all that the stream feeds, `[orderings, samples, ...]`."""
    inputs, labels, indices = (torch.cat(parts, 1) for parts in zip(*stream.train_dataloader(), strict=True))
    assert torch.equal(inputs, stream.train_inputs[indices])
    return inputs, labels


@pytest.mark.parametrize(("batch_size", "sizes"), [(1, [1] * 20), (3, [3] * 6 + [2]), (10, [10] * 2), (64, [20])])
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", STREAMS)
def test_ordering_is_the_same_whichever_run_beside_it(set_up: SetUp, kind: type[SampleStream]) -> None:
    _, among_many = fed(set_up(FeatureStream, orderings=6, seed=1))
    for k in (0, 3, 5):
        _, alone = fed(set_up(kind, orderings=1, first_ordering=k, batch_size=7, seed=1))
        assert torch.equal(alone[0], among_many[k])


def test_start_is_drawn_by_the_seed_alone(set_up: SetUp) -> None:
    start = set_up(FeatureStream, orderings=4, seed=1).start()
    again = set_up(FeatureStream, orderings=2, first_ordering=3, batch_size=5, max_samples=11, seed=1).start()
    other = set_up(FeatureStream, orderings=4, seed=2).start()
    for ours, same, different in zip(start.heads(), again.heads(), other.heads(), strict=True):
        assert torch.equal(ours[3:], same[:1])
        assert not torch.equal(ours, different)
    assert (start.features, start.classes, start.orderings, start.max_samples) == (1280, 2, 4, 20)
    assert start.heads()[0].abs().max() <= 1280**-0.5


@pytest.mark.parametrize("kind", STREAMS)
def test_validation_part(set_up: SetUp, kind: type[SampleStream]) -> None:
    whole = set_up(kind, orderings=1, seed=3)
    part = set_up(kind, orderings=1, seed=3, validation_size=7)
    indices = sample_validation(whole.validation_labels.numpy(), 7, seed=3)
    assert torch.equal(part.validation_inputs, whole.validation_inputs[indices])
    assert torch.equal(part.validation_labels, whole.validation_labels[indices])
    assert part.protocol()["validation_size"] == 7
    assert whole.protocol()["validation_size"] == 12


@pytest.mark.parametrize("chunk", [1, 5, 12, 100])
def test_validation_set_is_fed_whole_and_in_order(set_up: SetUp, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FeatureStream, "validation_chunk", chunk)
    stream = set_up(FeatureStream, orderings=1)
    (whole,) = stream.val_dataloader()
    inputs, labels = zip(*whole, strict=True)
    assert [len(part) for part in labels] == [len(part) for part in stream.validation_labels.split(chunk)]
    assert torch.equal(torch.cat(inputs), stream.validation_inputs)
    assert torch.equal(torch.cat(labels), stream.validation_labels)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_samples": 25}, "data.max_samples: 25 asked for, but there are 24 training photos"),
        ({"validation_size": 13}, "data.validation_size: 13 asked for, but there are 12 validation photos"),
    ],
)
@pytest.mark.parametrize("kind", STREAMS)
def test_more_than_there_is(set_up: SetUp, kind: type[SampleStream], options: dict[str, int], message: str) -> None:
    with pytest.raises(UserError, match=message):
        set_up(kind, orderings=1, **options)
    set_up(kind, orderings=1, **{name: value - 1 for name, value in options.items()})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "mobilenet_v9"}, "name: torchvision has no model 'mobilenet_v9'; it has mobilenet_v2"),
        ({"weights": "IMAGENET"}, "weights: torchvision's mobilenet_v2 has no 'IMAGENET'; allowed are IMAGENET1K_V1"),
        ({"model_args": {"widthmult": 2}}, "model_args: torchvision's mobilenet_v2 cannot be created with"),
        ({"preprocessing": Preprocessing(32, 48)}, "preprocessing.crop: 48 is given"),
    ],
)
def test_mistakes_in_the_backbone_begin_with_the_option(
    set_up: SetUp, tiny: BackboneSpec, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError) as caught:
        set_up(FeatureStream, backbone=replace(tiny, **change))
    assert str(caught.value).startswith(f"data.backbone.{message}")


def test_one_class_only(set_up: SetUp, photo_folder: Path) -> None:
    class OneClass(ClassFolders):
        def validation(self):  # type: ignore[no-untyped-def] # noqa: ANN202
            photos = super().validation()
            return photos.subset(np.flatnonzero(photos.labels == 0))

    with pytest.raises(UserError, match=r"data\.photos: there is no validation photo of class light"):
        set_up(FeatureStream, orderings=1, photos=OneClass(str(photo_folder)))


@pytest.fixture
def bad_photos(photo_folder: Path) -> list[str]:
    """Damage two training photos and one validation photo."""
    names = ["train/dark/2.jpg", "train/light/11.jpg", "validation/dark/0.jpg"]
    for name in names:
        (photo_folder / name).write_bytes(b"damaged")
    return names


@pytest.mark.parametrize("kind", STREAMS)
def test_unreadable_photos_stop_the_run_by_name(set_up: SetUp, kind: type[SampleStream], bad_photos: list[str]) -> None:
    for _ in range(2):  # computed, then found in the store
        with pytest.raises(UserError, match="2 of 24 training photos cannot be decoded") as caught:
            set_up(kind, orderings=1)
        assert all(name in str(caught.value) for name in bad_photos[:2])


@pytest.mark.parametrize("kind", STREAMS)
def test_unreadable_photos_are_left_out_and_recorded(
    set_up: SetUp, kind: type[SampleStream], bad_photos: list[str]
) -> None:
    for _ in range(2):
        stream = set_up(kind, orderings=1, on_bad_image="skip")
        assert list(stream.protocol()["unreadable_photos"]) == bad_photos
        assert stream.train_labels.tolist() == [0] * 11 + [1] * 11
        assert len(stream.validation_labels) == len(stream.validation_inputs) == 11
        assert len(stream.train_inputs) == 22
    whole = stream.photos.train()
    readable = [i for i, name in enumerate(whole.names) if name not in bad_photos]
    if kind is PhotoStream:
        pixels = torch.stack([stream.backbone.preprocessing.prepare(whole.read(i)) for i in readable])
        assert torch.equal(stream.train_inputs, pixels)


def test_too_few_are_readable(set_up: SetUp, bad_photos: list[str]) -> None:
    set_up(FeatureStream, orderings=1, on_bad_image="skip", max_samples=22)
    with pytest.raises(UserError, match="23 asked for, but there are 22 readable training photos"):
        set_up(FeatureStream, orderings=1, on_bad_image="skip", max_samples=23)


def test_class_without_readable_photo(set_up: SetUp, photo_folder: Path) -> None:
    for path in (photo_folder / "validation" / "light").iterdir():
        path.write_bytes(b"damaged")
    with pytest.raises(UserError, match="none of the validation photos of class light can be decoded"):
        set_up(FeatureStream, orderings=1, on_bad_image="skip")


def test_photos_that_are_in_both_splits_stop_the_run_by_name(set_up: SetUp, photo_folder: Path) -> None:
    photo = next((photo_folder / "train" / "dark").iterdir())
    (photo_folder / "validation" / "dark" / "copy.jpg").write_bytes(photo.read_bytes())
    with pytest.raises(UserError, match=rf"^data\.photos: 1 photos .*{photo.name} \(training\) = .*copy\.jpg"):
        set_up(FeatureStream, orderings=1)
    stream = set_up(FeatureStream, orderings=1, on_duplicates="keep")
    assert stream.protocol()["duplicate_photos"] == [
        [f"train/dark/{photo.name} (training)", "validation/dark/copy.jpg (validation)"]
    ]


def test_validation_part_too_small_for_the_classes(set_up: SetUp) -> None:
    with pytest.raises(UserError, match=r"^data\.validation_size: 1 photos .* the 2 classes; ask for 2 or more$"):
        set_up(FeatureStream, orderings=1, validation_size=1)


@pytest.mark.parametrize("kind", STREAMS)
def test_validation_part_is_drawn_from_readable_photos(
    set_up: SetUp, kind: type[SampleStream], photo_folder: Path
) -> None:
    for name in ("dark/0", "dark/1", "dark/2", "dark/3", "light/5"):
        (photo_folder / "validation" / f"{name}.jpg").write_bytes(b"damaged " + name.encode())
    part = set_up(kind, orderings=1, seed=3, validation_size=6, on_bad_image="skip")
    assert part.validation_labels.tolist() == [0, 0, 1, 1, 1, 1]
    whole = set_up(kind, orderings=1, seed=3, on_bad_image="skip")
    chosen = {row.numpy().tobytes() for row in part.validation_inputs}
    assert len(chosen) == 6
    assert chosen < {row.numpy().tobytes() for row in whole.validation_inputs}
    with pytest.raises(UserError, match=r"^data\.validation_size: 8 asked for, but there are 7 readable validation"):
        set_up(kind, orderings=1, seed=3, validation_size=8, on_bad_image="skip")


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize(("spare", "device"), [(1e9, "meta"), (100, "cpu")])
def test_samples_are_moved_to_the_device_once_where_they_fit(
    set_up: SetUp,
    kind: type[SampleStream],
    spare: float,
    device: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stream = set_up(kind, orderings=1)
    monkeypatch.setattr("headstart.datamodules.photo_data._spare_bytes", lambda device: spare)
    monkeypatch.setattr(kind, "device", torch.device("meta"))
    stream.move_samples(stream.device)
    assert ("every batch is copied" in capsys.readouterr().out) == (device == "cpu")
    assert {str(part.device) for batch in stream.train_dataloader() for part in batch} == {device}
    assert {str(part.device) for whole in stream.val_dataloader() for chunk in whole for part in chunk} == {device}


def test_files_that_are_no_photos_are_counted(
    set_up: SetUp, photo_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("train/dark/a.gif", "train/dark/b.gif", "validation/light/c.gif"):
        (photo_folder / name).touch()
    for name in ("lost.jpg", "gone.jpg"):
        (photo_folder / "train" / "light" / name).symlink_to("nowhere")
    stream = set_up(FeatureStream)
    assert "data.photos: 5 files left out: 3 .gif, 2 dangling links\n" in capsys.readouterr().out
    assert stream.environment() == {
        "files_left_out": {".gif": 3, "dangling link": 2},
        "threads": torch.get_num_threads(),
        "decoding_processes": 0,
    }


@pytest.mark.slow
def test_streams_of_other_contents_are_told_apart(set_up: SetUp, photo_folder: Path) -> None:
    identity = set_up(FeatureStream, orderings=1).identity()
    same = ({"orderings": 3}, {"first_ordering": 2}, {"max_samples": 10}, {"num_workers": 0})
    assert all(set_up(FeatureStream, **{"orderings": 1, **change}).identity() == identity for change in same)
    other = ({"batch_size": 2}, {"seed": 1}, {"validation_size": 8}, {"max_samples": 19, "batch_size": 2})
    identities = [set_up(FeatureStream, **{"orderings": 1, **change}).identity() for change in other]
    identities.append(set_up(PhotoStream, orderings=1).identity())
    photo = next((photo_folder / "train" / "dark").iterdir())
    photo.rename(photo.with_name("renamed.jpg"))
    identities.append(set_up(FeatureStream, orderings=1).identity())
    (photo_folder / "validation" / "dark" / "new.jpg").write_bytes(photo.with_name("renamed.jpg").read_bytes() + b"end")
    identities.append(set_up(FeatureStream, orderings=1).identity())
    assert len({json.dumps(one, sort_keys=True) for one in (identity, *identities)}) == 1 + len(identities)


def test_the_source_head_is_part_of_what_is_fed(set_up: SetUp, tmp_path: Path) -> None:
    network, _ = build(BackboneSpec("mobilenet_v2", "random", {"width_mult": 0.25, "num_classes": 7}).network(5))
    identities = []
    for name in ("one", "other"):
        save_file(network.state_dict(), tmp_path / f"{name}.safetensors")
        weights = str(tmp_path / f"{name}.safetensors")
        backbone = BackboneSpec("mobilenet_v2", weights, {"width_mult": 0.25}, Preprocessing(32, 32))
        identities.append(set_up(FeatureStream, backbone=backbone).identity())
        network.get_parameter("classifier.1.weight").data.add_(1)
    assert identities[0]["network"] == identities[1]["network"]
    assert identities[0] != identities[1]


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


@pytest.mark.parametrize("kind", [FeatureStream, PhotoStream])
@pytest.mark.parametrize(
    ("name", "arguments", "crop", "message"),
    [
        ("timm/vit_tiny_patch16_224", {"depth": 1}, 64, "preprocessing: timm/vit\\w+ cannot take .*Assertion"),
        (OWN, {}, 2, "name: .*Own cannot take pictures of 2 x 2 pixels"),
        (OWN, {"does": "fail"}, 32, "name: .*Own cannot take .*KeyError: 'of its own'"),
        (OWN, {"does": "maps"}, 32, r"name: .*Own gives \[1, 8, 28, 28\] for one picture, .* \[1, 8\]"),
        (OWN, {"does": "tuple"}, 32, "name: .*Own gives a tuple for one picture"),
        (OWN, {"width": 9}, 32, r"name: .*Own gives \[1, 8\] for one picture, .* \[1, 9\]"),
    ],
)
def test_a_backbone_that_does_not_fit(
    kind: type[SampleStream], name: str, arguments: dict[str, Any], crop: int, message: str, set_up: SetUp
) -> None:
    backbone = BackboneSpec(name, "random", arguments, Preprocessing(64, crop))
    with pytest.raises(UserError, match=rf"^data\.backbone\.{message}"):
        set_up(kind, orderings=1, backbone=backbone)


def test_trying_a_backbone_out_draws_nothing_from_others(set_up: SetUp) -> None:
    torch.manual_seed(3)
    state = torch.get_rng_state()
    set_up(FeatureStream, backbone=BackboneSpec(OWN, "random", {}, Preprocessing(32, 32)))
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(("change", "option"), [({"std": (0.0, 1.0, 1.0)}, "std"), ({"mean": (nan, 0, 0)}, "mean")])
def test_normalisation_that_gives_no_numbers(change: dict[str, Any], option: str, set_up: SetUp) -> None:
    backbone = BackboneSpec("mobilenet_v2", "random", {}, Preprocessing(32, 32, **change))
    with pytest.raises(UserError, match=rf"^data\.backbone\.preprocessing\.{option}: "):
        set_up(FeatureStream, backbone=backbone)


@pytest.mark.parametrize(
    "function", ["headstart.datamodules.photos.photo_source.PhotoFiles.read", "hashlib.file_digest"]
)
def test_a_photo_that_cannot_be_read_at_the_moment(
    function: str, set_up: SetUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(function, fail)
    with pytest.raises(UserError, match=r"^data\.photos: .*\.jpg'? cannot be read .*Input/output error"):
        set_up(FeatureStream)


def test_features_that_are_not_finite_name_the_backbone(set_up: SetUp) -> None:
    backbone = BackboneSpec("mobilenet_v2", "random", {}, Preprocessing(32, 32, std=(1e-40, 1, 1)))
    with pytest.raises(UserError, match=r"^data\.backbone: model 'mobilenet_v2' gives NaN .* first for photo '"):
        set_up(FeatureStream, backbone=backbone)
