"""The head alone is trained, as on frozen features."""

import torch
from torch.optim import SGD

from headstart.modules import GradientDescent, HeadOnly
from headstart.modules.networks.trainable_backbone import TrainableBackbone
from headstart.tests.material.networks_to_train import begin, moved, staged
from headstart.tests.material.streams import random_photos


def test_it_is_gradient_descent_on_frozen_features() -> None:
    method, backbone = begin(HeadOnly(lambda p: SGD(p, lr=0.1)), staged()), staged()
    frozen = begin(GradientDescent(lambda p: SGD(p, lr=0.1)), None)
    photos, labels = random_photos(12)
    for part in range(0, 12, 4):
        method.adapt(photos[:, part : part + 4], labels[:, part : part + 4])
        with torch.no_grad():
            features = backbone(photos[0, part : part + 4])[None]
        frozen.adapt(features, labels[:, part : part + 4])
    with torch.no_grad():
        torch.testing.assert_close(method(photos[0]), frozen(backbone(photos[0])))
    assert moved(method, 3) == set()


def test_the_backbone_stays_as_it_is_where_statistics_are_trained() -> None:
    method = begin(HeadOnly(), TrainableBackbone(staged(), batch_norm="trained", dropout=True))
    assert method.backbone is not None
    before = {name: value.clone() for name, value in method.backbone.state_dict().items()}
    assert moved(method, 8) == set()
    assert any("running" in name for name in before)
    assert all(torch.equal(value, before[name]) for name, value in method.backbone.state_dict().items())
    assert any(module.training for module in method.backbone.modules())
