"""Features of sampled pixels: against a direct pass and the sample itself, and what is not computed again."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from headstart.contract.schema import ModelEntry
from headstart.datamodules import DrawnScenes
from headstart.evaluation.embeddings import Extraction
from headstart.evaluation.sources import sampled_pixels
from headstart.evaluation.sources.source_features import SourceFeatures, pixel_features, source_job
from headstart.evaluation.sources.targets import Target, read_target
from headstart.metrics.transferability.pixel_sampling import sample_pixels
from headstart.modules.networks.backbone import build_backbone
from headstart.modules.networks.spec import NetworkSpec
from headstart.modules.networks.taps import PIXELS
from headstart.tests.material.networks import name_network

PHOTOS, PER_PHOTO, SEED = 9, 30, 3


@pytest.fixture
def target(tmp_path: Path) -> Target:
    source = DrawnScenes(["fish", "car", "star"], train_size=PHOTOS, size=32)
    return read_target("scenes", source, "train", tmp_path, "targets.scenes")


@pytest.fixture
def network(tmp_path: Path) -> NetworkSpec:
    """A network whose file of weights says that its classifier was trained."""
    plain = build_backbone(name_network("resnet18", layer=PIXELS))
    state = {**plain.network.state_dict(), "classifier.weight": torch.randn(5, 960), "classifier.bias": torch.ones(5)}
    torch.save(state, tmp_path / "weights.pth")
    return name_network("resnet18", weights=str(tmp_path / "weights.pth"), layer=PIXELS)


def compute(network: NetworkSpec, target: Target, seed: int = SEED) -> SourceFeatures:
    job = source_job(ModelEntry.model_construct(), network, target, Extraction(device="cpu", num_workers=0))
    return pixel_features(job, target, PER_PHOTO, seed)


def test_pixels_are_those_of_the_sample(network: NetworkSpec, target: Target) -> None:
    result = compute(network, target)
    backbone, maps = build_backbone(network), target.photos.maps
    assert maps is not None
    pictures = [np.asarray(target.photos.read(index)).transpose(2, 0, 1) for index in range(PHOTOS)]
    labels: NDArray[np.uint8] = np.stack([np.asarray(maps.read(index))[..., 0] for index in range(PHOTOS)])
    with torch.inference_mode():
        dense = backbone(torch.from_numpy(np.stack(pictures))).movedim(-1, 1).numpy()
    features, chosen = sample_pixels(dense, labels, PER_PHOTO, seed=SEED)
    np.testing.assert_allclose(result.features, features, atol=1e-4)
    np.testing.assert_array_equal(result.labels, chosen)
    assert result.photos is not None
    np.testing.assert_array_equal(result.photos, np.repeat(np.arange(PHOTOS), PER_PHOTO))
    assert result.logits is not None
    assert backbone.source_head is not None
    expected = features @ backbone.source_head.numpy().T + 1
    np.testing.assert_allclose(result.logits, expected, atol=1e-2)


def test_a_stored_sample_needs_no_network(
    network: NetworkSpec, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = compute(network, target)
    monkeypatch.setattr(sampled_pixels, "build_backbone", lambda _: pytest.fail("run again"))
    again = compute(network, target)
    np.testing.assert_array_equal(again.features, first.features)
    monkeypatch.undo()
    assert not np.array_equal(compute(network, target, SEED + 1).features, first.features)


def test_the_pixels_of_a_photo_are_left_out_together(network: NetworkSpec, target: Target) -> None:
    result = compute(network, target)
    parts = result.divide(3, seed=0)
    for photo in range(PHOTOS):
        assert len(set(parts[result.photos == photo].tolist()) - {-1}) <= 1
    assert set(parts.tolist()) - {-1} == {0, 1, 2}
    # Whatever is left out, there is no class without a pixel.
    for part in range(3):
        assert set(result.labels[parts != part]) == set(result.labels)
