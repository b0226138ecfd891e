"""Rows against torchvision's own transform, a direct forward pass and the closed form."""

from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torchvision.transforms import InterpolationMode
from torchvision.transforms._presets import ImageClassification

from headstart.datamodules import row_computation
from headstart.datamodules.photos.photo_source import Photos
from headstart.datamodules.photos.stimuli import Stimuli
from headstart.datamodules.row_computation import FrozenNetwork, RowComputer, best_precision, load
from headstart.datamodules.row_request import NetworkSettings, RowRequest, pass_size
from headstart.modules.networks.backbone import build_backbone
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.modules.networks.layer_embedding import LayerEmbedding
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.taps import Tap
from headstart.output.errors import UserError

MakeComputer = Callable[..., RowComputer]
ALL = range(7)
PLAIN = Preprocessing(resize=8, crop=8, mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))


@pytest.fixture
def pictures(tmp_path: Path) -> Stimuli:
    generator = np.random.default_rng(0)
    paths = [tmp_path / f"{i}.png" for i in ALL]
    for path in paths:
        Image.fromarray(generator.integers(0, 256, (8, 8, 3)).astype(np.uint8)).save(path)
    return Stimuli([f"some/{path.name}" for path in paths], paths)


@pytest.fixture
def make_computer(pictures: Stimuli) -> MakeComputer:
    torch.manual_seed(0)
    # The dropout shows whether the network is in evaluation mode.
    network = nn.Sequential(OrderedDict(layer=nn.Sequential(nn.Dropout(0.9), nn.Flatten(), nn.Linear(192, 5))))

    def make() -> RowComputer:
        layers = LayerEmbedding("small", network, [Tap("layer", "flatten", 5)], PLAIN)
        frozen = FrozenNetwork("small", layers, torch.device("cpu"), layers.widths, "some")
        return RowComputer(RowRequest(pictures, PLAIN), 0, frozen)

    return make


def network_of(computer: RowComputer) -> nn.Module:
    assert computer.frozen is not None
    assert isinstance(computer.frozen.network, LayerEmbedding)
    return computer.frozen.network.network


def test_features_equal_a_direct_pass(photos: Photos, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len({photos.read(i).size for i in range(24)}) > 3
    for resize, crop, passes, workers in ((32, 32, 1, 0), (64, 48, 50, 2)):
        monkeypatch.setattr(row_computation, "pass_size", lambda side, kind, passes=passes: passes)
        prepared = Preprocessing(resize, crop)
        spec = BackboneSpec("mobilenet_v2", "random", {"width_mult": 0.25}, prepared).network(seed=0)
        preset = ImageClassification(crop_size=crop, resize_size=resize, interpolation=InterpolationMode.BILINEAR)
        backbone = build_backbone(spec)
        with torch.no_grad():
            expected = torch.cat([backbone.network(preset(photos.read(i))[None]) for i in range(24)])

        both = [NetworkSettings(precision, folded=True, device="cpu") for precision in ("float32", "bfloat16")]
        requests = [RowRequest(photos, prepared, settings, spec) for settings in both]
        exact, coarse = (
            torch.from_numpy(RowComputer(request, workers, load(request)).compute(range(24)).rows)
            for request in requests
        )
        torch.testing.assert_close(exact, expected, rtol=1e-4, atol=1e-5)
        # With eight bits of mantissa, a linear head sees the direction of a photo's features.
        assert coarse.dtype == torch.float32
        assert not torch.equal(coarse, exact)
        assert torch.cosine_similarity(exact, coarse).min() > 0.99


def test_rows_equal_the_closed_form_in_equal_passes(
    pictures: Stimuli, make_computer: MakeComputer, monkeypatch: pytest.MonkeyPatch
) -> None:
    photos = np.stack([np.asarray(pictures.read(i)) for i in ALL]).transpose(0, 3, 1, 2) / 255
    for size in (1, 2, 3, 7, 50):
        monkeypatch.setattr(row_computation, "pass_size", lambda side, kind, size=size: size)
        computer, seen = make_computer(), set[tuple[object, ...]]()
        linear = network_of(computer).get_submodule("layer.2")
        assert isinstance(linear, nn.Linear)
        expected = photos.reshape(7, -1) @ linear.weight.detach().numpy().T + linear.bias.detach().numpy()

        def look(network: nn.Module, arguments: tuple[torch.Tensor], seen: set[tuple[object, ...]] = seen) -> None:
            cudnn = torch.backends.cudnn
            arithmetic = cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32, torch.is_grad_enabled()
            seen.add((len(arguments[0]), *arithmetic, torch.rand(()).item()))

        network_of(computer).register_forward_pre_hook(look)
        state = torch.get_rng_state()
        result = computer.compute(ALL)
        assert np.allclose(result.rows, expected, atol=1e-5)
        assert (result.notes, result.remarks, computer.row_bytes) == ({"weights": "some", "widths": [5]}, {}, 20)
        # A row does not depend on the others.
        assert np.array_equal(computer.compute([6, 1]).rows, result.rows[[6, 1]])
        # Passes are of one size, deterministic, without gradients, and draw the same random numbers.
        ((count, *arithmetic, _),) = seen
        assert (count, arithmetic) == (size, [True, False, False, False])
        assert torch.equal(torch.get_rng_state(), state)
        assert not torch.backends.cudnn.deterministic


def test_what_a_network_cannot_compute_names_it(make_computer: MakeComputer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_computation, "CHUNK", 3)
    monkeypatch.setattr(row_computation, "pass_size", lambda side, kind: 3)
    whole = make_computer().compute(ALL).rows
    for place in (2, 5, 6):
        computer, expected = make_computer(), whole[place, 0].item()
        handle = (
            network_of(computer)
            .get_submodule("layer")
            .register_forward_hook(lambda _, __, out, e=expected: out.masked_fill((out - e).abs() < 1e-6, torch.nan))
        )
        with pytest.raises(UserError, match=rf"^model 'small' returns NaN .* first for stimulus 'some/{place}\.png'"):
            computer.compute(ALL)
        handle.remove()
    network_of(computer).register_forward_pre_hook(lambda *_: torch.empty(10**15))
    with pytest.raises(UserError, match=r"^model 'small': a pass of 3 pictures of 8 x 8 pixels does not fit .*; take"):
        computer.compute(ALL)


def test_precision_and_passes_by_device(monkeypatch: pytest.MonkeyPatch) -> None:
    for device, capability, amx, precision in (
        ("cpu", (0, 0), False, "float32"),
        ("cpu", (0, 0), True, "bfloat16"),
        ("cuda", (7, 5), True, "float32"),
        ("cuda", (8, 0), False, "bfloat16"),
        ("mps", (9, 0), True, "float32"),
    ):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _, capability=capability: capability)
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda amx=amx: {"amx_bf16": amx})
        assert best_precision(torch.device(device)) == precision
    kinds = [NetworkSettings(device=each).identity(224) for each in ("cpu", "cuda:1", "mps:0")]
    assert [(each["device"], each["pass"]) for each in kinds] == [("cpu", 4), ("cuda", 256), ("mps", 256)]
    assert pass_size(5000, "cpu") == 1
    for available, kind in ((True, "cuda"), (False, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda available=available: available)
        assert NetworkSettings().kind == kind
