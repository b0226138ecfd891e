"""Weights from an address are downloaded once, and only those with the given SHA-256 are used."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest
import timm
import torch
from safetensors.torch import save

from headstart.modules.networks.backbone import build_backbone
from headstart.modules.networks.backbone_spec import BackboneSpec, without_digest
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.spec import WeightsAddress
from headstart.modules.networks.weights import fetch_weights
from headstart.tests.material.file_servers import FileServer, serve_files
from headstart.tests.material.mistakes import refusal

NAME, ARGS = "vit_tiny_patch16_224", {"depth": 1, "embed_dim": 24, "img_size": 32}
PREPROCESSING = Preprocessing(resize=32, crop=32)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "hub"))
    with serve_files() as served:
        yield served


def offer(server: FileServer, content: bytes) -> BackboneSpec:
    server.files["/model.safetensors"] = content
    return choose(f"{server.url}/model.safetensors#sha256={sha256(content).hexdigest()}")


def choose(weights: str) -> BackboneSpec:
    return BackboneSpec(f"timm/{NAME}", weights, ARGS, PREPROCESSING)


def draw(**arguments: int) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return timm.create_model(NAME, **{**ARGS, **arguments}).state_dict()  # type: ignore[no-any-return]


def downloads(folder: Path) -> list[Path]:
    """Return what downloads left, but for locks."""
    return [path for path in (folder / "hub" / "checkpoints").iterdir() if path.suffix != ".lock"]


def test_a_file_is_downloaded_once(server: FileServer, tmp_path: Path) -> None:
    state = draw()
    spec = offer(server, save(state))
    for _ in range(2):
        loaded = build_backbone(spec.network(0)).network.state_dict()
        assert all(torch.equal(value, state[name]) for name, value in loaded.items())
    assert server.requests["GET /model.safetensors"] == 1
    # A local copy has the same identity, so that features and traces are shared.
    copy = tmp_path / "copy.safetensors"
    copy.write_bytes(server.files["/model.safetensors"])
    assert choose(str(copy)).network(0).identity == spec.network(0).identity
    assert spec.network(0).file_digest == sha256(copy.read_bytes()).hexdigest()


def test_what_cannot_be_fetched_is_named_and_leaves_nothing(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = offer(server, save(draw()))
    build = partial(build_backbone, spec.network(0))
    nowhere = choose(f"http://127.0.0.1:9/model.safetensors#sha256={64 * '0'}")
    server.failures["/model.safetensors"] = [0]
    assert "/model.safetensors" in refusal(build)
    server.files["/model.safetensors"] += b"more"
    assert "cannot be fetched (SHA256 hash of downloaded file" in refusal(build)
    assert re.search(r"cannot be fetched \(.*refused", refusal(lambda: build_backbone(nowhere.network(0))))
    assert downloads(tmp_path) == []
    server.files["/model.safetensors"] = server.files["/model.safetensors"][:-4]
    build()
    assert len(downloads(tmp_path)) == 1
    (tmp_path / "file").touch()
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "file"))
    assert "cannot be fetched (" in refusal(build)


def test_two_that_need_a_file_at_the_same_time_download_it_once(server: FileServer, tmp_path: Path) -> None:
    address = offer(server, save(draw())).network(0).weights
    assert isinstance(address, WeightsAddress)
    with ThreadPoolExecutor(4) as pool:
        assert len({*pool.map(fetch_weights, [address] * 4)}) == 1
    assert server.requests["GET /model.safetensors"] == 1
    assert len(downloads(tmp_path)) == 1


def test_an_address_needs_a_digest_that_readers_do_not_see() -> None:
    for ending in ("", "#sha256=12", f"#sha256={64 * 'G'}", f"#md5={32 * '0'}"):
        message = refusal(partial(choose(f"https://example.org/model.safetensors{ending}").network, 0))
        assert "is not the address of a .safetensors or .pth or .pt file with its SHA-256" in message
    assert without_digest("https://example.org/a.pth#sha256=12") == "https://example.org/a.pth"
    assert without_digest("IMAGENET1K_V1") == "IMAGENET1K_V1"


def test_positions_of_another_size_are_those_of_timm(server: FileServer) -> None:
    larger = draw(img_size=64)
    backbone = build_backbone(offer(server, save(larger)).network(0))
    network = timm.create_model(NAME, **ARGS)
    expected = timm.models.vision_transformer.checkpoint_filter_fn(larger, network)["pos_embed"]
    torch.testing.assert_close(backbone.network.state_dict()["pos_embed"], expected)
