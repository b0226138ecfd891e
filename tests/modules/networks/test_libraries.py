"""open_clip is optional, and of its models only the image tower runs; the installed one where there is one."""

import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from headstart.modules.networks.layer_embedding import LayerEmbedding
from headstart.modules.networks.normalization import Normalization
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.taps import Tap
from headstart.modules.networks.weights import weights_digest
from headstart.output.errors import UserError
from headstart.tests.material.networks import build_network

PARAMETERS = {"model_name": "RN50", "embed_dim": 16, "vision_cfg": {"layers": [1, 1, 1, 1], "width": 8}}


class TwoTowers(nn.Module):
    """A network with open_clip's interface, as small as can be."""

    def __init__(self, embed_dim: int, vision_cfg: dict[str, Any]) -> None:
        super().__init__()
        self.visual = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, embed_dim))
        self.transformer = nn.Linear(vision_cfg["width"], embed_dim)

    def forward(self, image: Tensor | None = None, text: Tensor | None = None) -> Any:
        images = None if image is None else nn.functional.normalize(self.visual(image), dim=-1)
        return images, None if text is None else self.transformer(text), torch.ones(())


def stand_in() -> ModuleType:
    """Build a module with the part of open_clip's interface that is used."""

    def create_model(
        model_name: str, pretrained: str | None, pretrained_image: bool, pretrained_text: bool, **parameters: Any
    ) -> nn.Module:
        assert not pretrained_image
        assert not pretrained_text
        return TwoTowers(**parameters)

    module: Any = ModuleType("open_clip")
    module.list_models = lambda: ["RN50", "RN50-quickgelu", "ViT-B-32"]
    module.list_pretrained_tags_by_model = lambda model: ["openai", "yfcc15m", "cc12m"]
    module.create_model = create_model
    return module  # type: ignore[no-any-return]


def build(weights: str | None = None, name: str = "clip_rn50", **parameters: Any) -> nn.Module:
    return build_network(name, "open_clip", weights, parameters={**PARAMETERS, **parameters})


@pytest.fixture
def open_clip(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have open_clip, or where it is not installed, its stand-in."""
    if find_spec("open_clip") is None:
        monkeypatch.setitem(sys.modules, "open_clip", stand_in())


@pytest.mark.usefixtures("open_clip")
def test_image_tower_alone_runs() -> None:
    network = build()
    assert weights_digest(network) == weights_digest(build()) != weights_digest(build(name="b"))
    text = [module for path, module in network.named_modules() if path.startswith("transformer")]
    assert text
    for module in text:
        module.register_forward_pre_hook(lambda *_: pytest.fail("the text tower runs"))
    model = LayerEmbedding("clip_rn50", network, [Tap("visual", "flatten", 16)], Preprocessing(224, 224))
    photos = torch.randint(256, (2, 3, 224, 224), dtype=torch.uint8)
    with torch.no_grad():
        expected = network.visual(Normalization(model.preprocessing)(photos))  # type: ignore[operator]
    torch.testing.assert_close(model(photos), expected, rtol=1e-4, atol=1e-5)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "open_clip", None)
    with pytest.raises(UserError, match=r"model 'clip_rn50': .*pip install 'headstart\[open_clip\]'"):
        build()
