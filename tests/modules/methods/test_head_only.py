"""The head alone is trained, as on frozen features."""

from __future__ import annotations

import pytest
import torch
from torch.optim import SGD

from modules import GradientDescent, HeadOnly
from output.errors import UserError
from tests.material.networks_to_train import begin, moved, staged
from tests.material.streams import draw_photos


def test_it_is_gradient_descent_on_frozen_features() -> None:
    method, backbone = begin(HeadOnly(lambda p: SGD(p, lr=0.1)), staged()), staged()
    frozen = begin(GradientDescent(lambda p: SGD(p, lr=0.1)), None)
    photos, labels = draw_photos(12)
    for part in range(0, 12, 4):
        method.adapt(photos[:, part : part + 4], labels[:, part : part + 4])
        with torch.no_grad():
            features = backbone(photos[0, part : part + 4])[None]
        frozen.adapt(features, labels[:, part : part + 4])
    with torch.no_grad():
        torch.testing.assert_close(method(photos[0]), frozen(backbone(photos[0])))
    assert moved(method, 3) == set()


def test_frozen_features_are_refused() -> None:
    with pytest.raises(UserError, match=r"HeadOnly .*feed it photos"):
        begin(HeadOnly(), None)
