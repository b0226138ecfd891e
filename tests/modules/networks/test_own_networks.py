"""Networks of one's own as backbones: where their features are taken, and which are refused."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn

from headstart.datamodules.chosen_backbone import build_chosen
from headstart.modules.networks.backbone import build_backbone
from headstart.modules.networks.backbone_spec import BackboneSpec
from headstart.modules.networks.layer_embedding import LayerEmbedding
from headstart.modules.networks.normalization import Normalization
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.taps import Tap
from headstart.tests.material.mistakes import refusal
from headstart.tests.material.networks import random_photos

SMALL = Preprocessing(resize=32, crop=32)

OWN = """
import torch
from torch import nn

def classifier(width=5):
    return nn.Sequential(nn.Conv2d(3, width, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 4))

def mixing():
    norm = nn.BatchNorm2d(5, track_running_stats=False)
    return nn.Sequential(nn.Conv2d(3, 5, 3), norm, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(5, 4))

class Reordered(nn.Module):
    def __init__(self, last=nn.Identity):
        super().__init__()
        self.classifier, self.last = nn.Linear(6, 4), last()
        self.body = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 6))

    def forward(self, photos):
        return self.last(self.classifier(self.body(photos)))

def softmax():
    return Reordered(lambda: nn.LogSoftmax(1))

class Combining(Reordered):
    def __init__(self, how):
        super().__init__()
        self.how, self.alias, self.square = how, self.classifier, nn.Linear(6, 6)

    def forward(self, photos):
        features = self.body(photos)
        if self.how == "mean":
            return (self.classifier(features) + nn.functional.linear(features, self.square.weight[:4])) / 2
        if self.how == "twice":
            return self.square(self.square(features).relu())
        return self.alias(features)

mean, twice, alias = (lambda how=how: Combining(how) for how in ("mean", "twice", "alias"))

class Features(nn.Module):
    num_features = 6

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 6))

    def forward(self, photos):
        return self.layers(photos)

class Leading(Features):
    def forward(self, photos):
        rows = super().forward(photos)
        return rows + rows[:1]

"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write a module of a user's own."""
    name = f"own_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def test_own_network_by_its_path(own: str, tmp_path: Path) -> None:
    spec = BackboneSpec(f"{own}.classifier", "random", {"width": 7}, SMALL)
    backbone, again, other = (build_backbone(spec.network(seed)) for seed in (0, 0, 1))
    assert backbone.digest() == again.digest() != other.digest()
    photos, network, head = random_photos(), backbone.network, nn.Linear(7, 4)
    with torch.no_grad():
        expected = network[:3](Normalization(SMALL)(photos))  # type: ignore[index]
        torch.testing.assert_close(backbone(photos), expected)
    assert (backbone.width, backbone.source_head) == (7, None)
    torch.save({**network.state_dict(), "3.weight": head.weight, "3.bias": head.bias}, tmp_path / "w.pth")
    loaded = build_backbone(replace(spec, weights=str(tmp_path / "w.pth")).network(seed=1))
    assert loaded.digest() == backbone.digest()
    assert loaded.source_head is not None
    assert torch.equal(loaded.source_head, head.weight)


def test_the_head_of_an_own_network_is_the_linear_layer_that_runs_last(own: str) -> None:
    backbone = build_backbone(BackboneSpec(f"{own}.Reordered", "random", preprocessing=SMALL).network(seed=0))
    photos = random_photos()
    with torch.no_grad():
        expected = backbone.network.body(Normalization(SMALL)(photos))  # type: ignore[operator]
        torch.testing.assert_close(backbone(photos), expected)
    layers = LayerEmbedding("own", backbone.network, [Tap("body", None, None)], SMALL)
    torch.testing.assert_close(layers(photos), expected)
    assert backbone.width == 6
    renamed = build_backbone(BackboneSpec(f"{own}.alias", "random", preprocessing=SMALL).network(seed=0))
    with torch.no_grad():
        torch.testing.assert_close(renamed(photos), renamed.network.body(Normalization(SMALL)(photos)))  # type: ignore[operator]


# Networks whose features would be wrong.
WRONG = {
    "softmax": "softmax does more than to return what its last linear layer 'classifier' returns, for instance",
    "mean": "mean does more than to return what its last linear layer",
    "twice": "twice does more than to return what its last linear layer 'square' returns",
    "mixing": "mixing returns other features of a picture beside other pictures; give a network whose",
    "Leading": "Leading returns other features of a picture beside other pictures; give a network whose",
    "clasifier": "clasifier cannot be imported: AttributeError",
}


def test_own_networks_that_are_refused(own: str) -> None:
    for name, words in WRONG.items():
        spec = BackboneSpec(f"{own}.{name}", "random", preprocessing=SMALL)
        message = refusal(partial(build_chosen, spec, 0, torch.device("cpu")))
        assert message.startswith("name: ")
        assert words in message
    message = refusal(partial(build_backbone, BackboneSpec(f"{own}.classifier", "random").network(seed=0)))
    assert message.startswith("preprocessing: ")
    assert "classifier states no square centre crop; give resize and" in message


def test_own_network_that_gives_features(own: str) -> None:
    backbone = build_backbone(BackboneSpec(f"{own}.Features", "random", preprocessing=SMALL).network(seed=0))
    with torch.no_grad():
        assert backbone(random_photos()).shape == (3, 6)
    assert (backbone.width, backbone.source_head) == (6, None)
