"""Rows against torchvision's own transform, a direct forward pass and the closed form."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torchvision.transforms import InterpolationMode
from torchvision.transforms._presets import ImageClassification

from headstart.datamodules import row_computation
from headstart.datamodules.photos.class_folders import ClassFolders
from headstart.datamodules.photos.photo_source import Photos
from headstart.datamodules.photos.stimuli import Stimuli
from headstart.datamodules.row_computation import RowComputer, best_precision, load
from headstart.datamodules.row_request import Policy, Precision, pass_size
from headstart.modules.networks.backbone import Backbone, build_backbone
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.modules.networks.layer_embedding import LayerEmbedding
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import NetworkSpec
from headstart.output.errors import UserError
from headstart.tests.datamodules.conftest import PLAIN
from headstart.tests.material.stored_rows import NumberedPhotos

MakeComputer = Callable[..., RowComputer]


def network_of(computer: RowComputer) -> nn.Module:
    assert computer.frozen is not None
    assert isinstance(computer.frozen.network, LayerEmbedding)
    return computer.frozen.network.network


def stack(computer: RowComputer) -> NDArray[np.float32]:
    return computer.compute(range(len(computer.pictures))).rows


def small(resize: int, crop: int) -> NetworkSpec:
    preparation = Preprocessing(resize=resize, crop=crop)
    return BackboneSpec("mobilenet_v2", "random", {"width_mult": 0.25}, preparation).network(seed=0)


def feature_rows(photos: Photos, spec: NetworkSpec, precision: Precision = "float32", workers: int = 0) -> RowComputer:
    policy = Policy(precision, folded=True, device="cpu")
    assert spec.preprocessing is not None
    return RowComputer(photos, spec.preprocessing, precision, workers, load(spec, [], policy))


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
    rows, notes, remarks = RowComputer(NumberedPhotos(count), Preprocessing(8, 4), workers=workers).compute(
        range(count)
    )
    pixels = rows
    assert pixels.shape == (count, 3, 4, 4)
    assert pixels.dtype == np.uint8
    assert (pixels[:, 0] == np.arange(1, count + 1)[:, None, None]).all()
    assert (notes, remarks) == ({}, {})


def test_rows_equal_the_closed_form(pictures: Stimuli, make_computer: MakeComputer) -> None:
    rows = make_computer()
    linear = network_of(rows).get_submodule("layer.2")
    assert isinstance(linear, nn.Linear)
    photos = np.stack([np.asarray(pictures.read(i)) for i in range(7)]).transpose(0, 3, 1, 2) / 255
    expected = photos.reshape(7, -1) @ linear.weight.detach().numpy().T + linear.bias.detach().numpy()
    result = rows.compute(range(7))
    assert np.allclose(result.rows, expected, atol=1e-5)
    assert result.notes == {"weights": "some", "widths": [5]}
    assert rows.row_bytes == 20


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
def test_every_pass_has_the_same_size(make_computer: MakeComputer, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(row_computation, "pass_size", lambda side, kind: size)
    rows = make_computer()
    seen = []
    network_of(rows).register_forward_pre_hook(lambda network, arguments: seen.append(len(arguments[0])))
    assert stack(rows).shape == (7, 5)
    assert set(seen) == {size}


def test_a_row_does_not_depend_on_the_others(make_computer: MakeComputer) -> None:
    whole = stack(make_computer())
    assert np.array_equal(make_computer().compute([4]).rows, whole[4:5])
    assert np.array_equal(make_computer().compute([6, 1]).rows, whole[[6, 1]])


def test_arithmetic_is_deterministic_while_rows_are_computed(make_computer: MakeComputer) -> None:
    rows = make_computer()
    seen = []

    def look(network: nn.Module, arguments: object) -> None:
        cudnn = torch.backends.cudnn
        seen.append((cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32, torch.is_grad_enabled()))

    network_of(rows).register_forward_pre_hook(look)
    before = torch.backends.cudnn.deterministic
    stack(rows)
    assert set(seen) == {(True, False, False, False)}
    assert torch.backends.cudnn.deterministic == before


def test_precision_is_what_is_asked_for(make_computer: MakeComputer) -> None:
    full, half = stack(make_computer()), stack(make_computer(precision="bfloat16"))
    assert full.dtype == half.dtype == np.float32
    assert not np.array_equal(full, half)
    assert np.allclose(full, half, atol=0.05)


def test_nan_is_refused_with_model_and_stimulus(make_computer: MakeComputer) -> None:
    rows = make_computer()
    layer = network_of(rows).get_submodule("layer")
    layer.register_forward_hook(lambda module, arguments, output: output.masked_fill(output == output[2, 0], torch.nan))
    with pytest.raises(UserError, match=r"'small'.*'some/2\.png'"):
        stack(rows)


def test_memory_that_a_pass_does_not_find_is_reported(make_computer: MakeComputer) -> None:
    rows = make_computer()
    network_of(rows).register_forward_pre_hook(lambda *_: torch.empty(10**15))
    message = (
        rf"^model 'small': a pass of {rows.size} pictures of \d+ x \d+ pixels does not fit .*; take a smaller crop"
    )
    with pytest.raises(UserError, match=message):
        stack(rows)


@pytest.mark.parametrize("place", [2, 5, 6])
def test_nan_in_a_later_chunk_names_its_stimulus(
    make_computer: MakeComputer, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    expected = stack(make_computer())[place, 0].item()
    monkeypatch.setattr(row_computation, "CHUNK", 3)
    monkeypatch.setattr(row_computation, "pass_size", lambda side, kind: 3)
    rows = make_computer()
    layer = network_of(rows).get_submodule("layer")
    layer.register_forward_hook(
        lambda module, arguments, output: output.masked_fill((output - expected).abs() < 1e-6, torch.nan)
    )
    with pytest.raises(UserError, match=rf"first for stimulus 'some/{place}\.png'"):
        stack(rows)


def test_every_pass_draws_the_same_random_numbers(make_computer: MakeComputer) -> None:
    rows = make_computer()
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


def test_passes_are_part_of_what_rows_depend_on() -> None:
    on_cpu, on_gpu = (Policy(device=device).identity(224) for device in ("cpu", "cuda:0"))
    assert (on_cpu["device"], on_cpu["pass"]) == ("cpu", 4)
    assert (on_gpu["device"], on_gpu["pass"]) == ("cuda", 256)
    for side in (32, 224, 225, 5000):
        assert pass_size(side, "cpu") * side**2 <= 4 * 224**2 or pass_size(side, "cpu") == 1


@pytest.mark.parametrize(("available", "kind"), [(True, "cuda"), (False, "cpu")])
def test_torch_is_asked_for_a_gpu(monkeypatch: pytest.MonkeyPatch, available: bool, kind: str) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: available)
    assert Policy().kind == kind
    assert [Policy(device=each).kind for each in ("cpu", "cuda:1", "mps:0")] == ["cpu", "cuda", "mps"]
