"""Features and logits of source models: computed in one pass, stored, and read again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from headstart.contract.documents import read_registry
from headstart.datamodules.photos.class_folders import ClassFolders
from headstart.evaluation.embeddings import Extraction
from headstart.evaluation.sources.source_features import SourceFeatures, source_features, source_job
from headstart.evaluation.sources.targets import read_target
from headstart.modules.networks.build import build
from headstart.modules.networks.normalization import Normalization
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.tests.material.prepared_pictures import stack

SIDE = 32


def forward(network: nn.Module, folder: Path) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int64]]:
    """Return what enters ResNet's classifier and what leaves it, in passes of one photo each."""
    body = nn.Sequential(*list(network.children())[:-1])
    photos = ClassFolders(str(folder)).train()
    preprocessing = Preprocessing(resize=SIDE, crop=SIDE)
    entered, left = [], []
    with torch.no_grad():
        for index in range(len(photos)):
            image = Normalization(preprocessing)(stack([preprocessing.prepare(photos.read(index))]))
            entered.append(body(image).flatten(1))
            left.append(network(image))
    return torch.cat(entered).numpy(), torch.cat(left).numpy(), photos.labels


@pytest.fixture
def stored_features(
    run: Callable[..., Any], registry: Path, photo_folder: Path
) -> tuple[SourceFeatures, NDArray[np.int64]]:
    """Run once; return the stored features and the labels."""
    run()
    target = read_target("photos", ClassFolders(str(photo_folder)), "train", photo_folder, "targets.photos")
    known, options = read_registry(registry), Extraction(device="cpu")
    network = known.networks(["resnet18"], options.seed)["resnet18"]
    result = source_features(source_job(known.entries["resnet18"], network, target, options), target)
    assert result.computed == 0
    return result, target.photos.labels


def test_features_and_logits_are_those_of_a_direct_pass(
    stored_features: tuple[SourceFeatures, NDArray[np.int64]], registry: Path, photo_folder: Path
) -> None:
    named = read_registry(registry).networks(["resnet18"], seed=0)["resnet18"]
    network, _ = build(named)
    features, logits, labels = forward(network, photo_folder)
    np.testing.assert_array_equal(stored_features[1], labels)
    np.testing.assert_allclose(stored_features[0].features, features, atol=1e-5)
    assert stored_features[0].logits is not None
    np.testing.assert_allclose(stored_features[0].logits, logits, atol=1e-5)
    assert np.ptp(logits, axis=0).min() > 1e-3
