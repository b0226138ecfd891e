"""Rows against torchvision's own transform, a direct forward pass and the closed form."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torchvision.transforms import InterpolationMode
from torchvision.transforms._presets import ImageClassification

from headstart.datamodules import decoding, row_computation
from headstart.datamodules.decoding import Decoder, Work
from headstart.datamodules.photos.class_folders import ClassFolders
from headstart.datamodules.photos.photo_source import Photos
from headstart.datamodules.photos.stimuli import Stimuli
from headstart.datamodules.row_computation import ComputedRows, FrozenNetwork, best_precision, load
from headstart.datamodules.row_policy import Policy, Precision, Resources
from headstart.modules.networks.backbone import Backbone, build_backbone
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.modules.networks.layer_embedding import LayerEmbedding
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import NetworkSpec
from headstart.modules.networks.taps import Tap
from headstart.output.errors import UserError
from headstart.tests.material.computed_rows import (
    PLAIN,
    REMARK,
    MakeRows,
    Network,
    NumberedPhotos,
    network_of,
    pixel_rows,
    stack,
)


def small(resize: int, crop: int) -> NetworkSpec:
    preparation = Preprocessing(resize=resize, crop=crop)
    return BackboneSpec("mobilenet_v2", "random", {"width_mult": 0.25}, preparation).network(seed=0)


def feature_rows(photos: Photos, spec: NetworkSpec, precision: Precision = "float32", workers: int = 0) -> ComputedRows:
    policy, resources = Policy(precision, folded=True, device="cpu"), Resources(Path(), "features", workers)
    assert spec.preprocessing is not None
    return ComputedRows(photos, range(len(photos)), spec.preprocessing, policy, resources, load(spec, [], policy))


def direct_features(photos: Photos, backbone: Backbone, resize: int, crop: int) -> Tensor:
    """Run the network photo by photo on what torchvision's preset makes of each."""
    preset = ImageClassification(crop_size=crop, resize_size=resize, interpolation=InterpolationMode.BILINEAR)
    with torch.no_grad():
        return torch.cat([backbone.network(preset(photos.read(i))[None]) for i in range(len(photos))])


@pytest.mark.parametrize(("resize", "crop"), [(32, 32), (40, 32), (64, 48)])
@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("passes", [1, 5, 24])
def test_features_equal_a_direct_pass(
    photo_folder: Path, resize: int, crop: int, workers: int, passes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headstart.datamodules.row_computation.pass_size", lambda side, kind: passes)
    photos, spec = ClassFolders(str(photo_folder)).train(), small(resize, crop)
    assert len({photos.read(i).size for i in range(len(photos))}) > 3
    features = stack(feature_rows(photos, spec, workers=workers))
    assert features.dtype == np.float32
    expected = direct_features(photos, build_backbone(spec), resize, crop)
    torch.testing.assert_close(torch.from_numpy(features), expected, rtol=1e-4, atol=1e-5)


def test_bfloat16_keeps_the_direction_of_every_photo(photo_folder: Path) -> None:
    # With eight bits of mantissa single features near zero may be off by any factor, and all of a photo by a few
    # per cent in common; what a linear head makes of a photo depends on the direction of its features.
    photos, spec = ClassFolders(str(photo_folder)).train(), small(32, 32)
    exact, coarse = (stack(feature_rows(photos, spec, p)) for p in PRECISIONS)
    assert coarse.dtype == np.float32
    assert not np.array_equal(coarse, exact)
    cosine = torch.cosine_similarity(torch.from_numpy(exact), torch.from_numpy(coarse))
    assert cosine.min() > 0.99


PRECISIONS: tuple[Precision, Precision] = ("float32", "bfloat16")


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("count", [1, 64, 131])
def test_every_photo_in_its_row(count: int, workers: int) -> None:
    rows = pixel_rows(NumberedPhotos(count), Preprocessing(resize=8, crop=4), workers)
    assert len(rows) == count
    pixels = stack(rows)
    assert pixels.shape == (count, 3, 4, 4)
    assert pixels.dtype == np.uint8
    assert (pixels == np.arange(1, count + 1)[:, None, None, None]).all()
    assert rows.remarks == {}
    assert rows.notes == {}


def test_rows_equal_the_closed_form(pictures: Stimuli, make_rows: MakeRows) -> None:
    rows = make_rows()
    linear = network_of(rows).get_submodule("layer.2")
    assert isinstance(linear, nn.Linear)
    photos = np.stack([np.asarray(pictures.read(i)) for i in range(7)]).transpose(0, 3, 1, 2) / 255
    expected = photos.reshape(7, -1) @ linear.weight.detach().numpy().T + linear.bias.detach().numpy()
    assert np.allclose(stack(rows), expected, atol=1e-5)
    assert rows.notes == {"weights": "some", "widths": [5]}


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
def test_every_pass_has_the_same_size(make_rows: MakeRows, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(row_computation, "pass_size", lambda side, kind: size)
    rows = make_rows()
    seen = []
    network_of(rows).register_forward_pre_hook(lambda network, arguments: seen.append(len(arguments[0])))
    assert stack(rows).shape == (7, 5)
    assert set(seen) == {size}


def test_a_row_does_not_depend_on_the_others(make_rows: MakeRows) -> None:
    assert np.array_equal(stack(make_rows([4])), stack(make_rows())[4:5])
    assert np.array_equal(stack(make_rows([6, 1])), stack(make_rows())[[6, 1]])


def test_arithmetic_is_deterministic_while_rows_are_computed(make_rows: MakeRows) -> None:
    rows = make_rows()
    seen = []

    def look(network: nn.Module, arguments: object) -> None:
        cudnn = torch.backends.cudnn
        seen.append((cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32, torch.is_grad_enabled()))

    network_of(rows).register_forward_pre_hook(look)
    before = torch.backends.cudnn.deterministic
    stack(rows)
    assert set(seen) == {(True, False, False, False)}
    assert torch.backends.cudnn.deterministic == before


def test_precision_is_what_is_asked_for(make_rows: MakeRows) -> None:
    full, half = stack(make_rows()), stack(make_rows(precision="bfloat16"))
    assert full.dtype == half.dtype == np.float32
    assert not np.array_equal(full, half)
    assert np.allclose(full, half, atol=0.05)


def test_nan_is_refused_with_model_and_stimulus(make_rows: MakeRows) -> None:
    rows = make_rows()
    layer = network_of(rows).get_submodule("layer")
    layer.register_forward_hook(lambda module, arguments, output: output.masked_fill(output == output[2, 0], torch.nan))
    with pytest.raises(UserError, match=r"'small'.*'some/2\.png'"):
        stack(rows)


def test_memory_that_a_pass_does_not_find_is_reported(make_rows: MakeRows) -> None:
    rows = make_rows()
    network_of(rows).register_forward_pre_hook(lambda *_: torch.empty(10**15))
    message = (
        rf"^model 'small': a pass of {rows.size} pictures of \d+ x \d+ pixels does not fit .*; take a smaller crop"
    )
    with pytest.raises(UserError, match=message):
        stack(rows)


@pytest.mark.parametrize("place", [2, 5, 6])
def test_nan_in_a_later_chunk_names_its_stimulus(
    make_rows: MakeRows, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    expected = stack(make_rows())[place, 0].item()
    monkeypatch.setattr(row_computation, "CHUNK", 3)
    monkeypatch.setattr(row_computation, "pass_size", lambda side, kind: 3)
    rows = make_rows()
    layer = network_of(rows).get_submodule("layer")
    layer.register_forward_hook(
        lambda module, arguments, output: output.masked_fill((output - expected).abs() < 1e-6, torch.nan)
    )
    with pytest.raises(UserError, match=rf"first for stimulus 'some/{place}\.png'"):
        stack(rows)


def test_every_pass_draws_the_same_random_numbers(make_rows: MakeRows) -> None:
    rows = make_rows()
    rows.size = 2
    torch.manual_seed(99)
    state = torch.get_rng_state()
    seen = []
    network_of(rows).register_forward_pre_hook(lambda network, arguments: seen.append(torch.rand(()).item()))
    stack(rows)
    assert torch.equal(torch.get_rng_state(), state)
    assert len(seen) == 4
    assert len(set(seen)) == 1


@pytest.mark.parametrize("folded", [False, True])
def test_weights_that_are_drawn_elsewhere_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folded: bool
) -> None:
    (tmp_path / "restless.py").write_text(
        "import numpy\nimport torch\n\n\ndef make():\n"
        "    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 5), torch.nn.Linear(5, 2))\n"
        "    network[1].weight.data[0, 0] = numpy.random.default_rng().random()\n    return network\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    spec = BackboneSpec("restless.make", "random", preprocessing=PLAIN).network(0)
    policy = Policy(folded=folded, device="cpu")
    loaded = load(spec, [], policy).weights
    with pytest.raises(UserError, match=r"^model 'restless.make': its weights differ each time it is built"):
        load(replace(spec, loaded=loaded), [], policy)


@pytest.mark.parametrize("workers", [0, 2])
def test_decoding_is_split_over_processes_whatever_the_pass(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_computation, "pass_size", lambda side, kind: 12_544)
    for module in (decoding, row_computation):
        monkeypatch.setattr(module, "batch_size", lambda *_: 8)
    sizes = []
    decode = Decoder.__getitem__

    def look(decoder: Decoder, work: Work) -> Any:
        sizes.append(len(work.indices))
        return decode(decoder, work)

    monkeypatch.setattr(Decoder, "__getitem__", look)
    layers = LayerEmbedding("small", Network(), [Tap("layer", "flatten", 5)], PLAIN)
    frozen = FrozenNetwork("small", layers, torch.device("cpu"), layers.widths, "some")
    rows = ComputedRows(NumberedPhotos(50), range(50), PLAIN, REMARK, Resources(Path(), "rows", workers), frozen)
    rows.size = 20
    assert [len(chunk) for chunk in rows] == [50]
    assert sizes == ([] if workers else [8] * 6 + [2])


@pytest.mark.parametrize(
    ("device", "capability", "amx", "precision"),
    [
        ("cpu", (0, 0), False, "float32"),
        ("cpu", (0, 0), True, "bfloat16"),
        ("cuda", (7, 5), True, "float32"),
        ("cuda", (8, 0), False, "bfloat16"),
        ("cuda", (9, 0), False, "bfloat16"),
        ("mps", (9, 0), True, "float32"),
    ],
)
def test_precision_by_device(
    monkeypatch: pytest.MonkeyPatch, device: str, capability: tuple[int, int], amx: bool, precision: str
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf16": amx})
    assert best_precision(torch.device(device)) == precision
