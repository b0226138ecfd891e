"""Embeddings at layers: which side of a layer is taken, and that nothing but the layers' values counts."""

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import pytest
import timm
import torch
import torchvision
from torch import Tensor, nn
from torch.nn import functional
from torchvision.models.feature_extraction import create_feature_extractor

from headstart.modules.networks.layer_embedding import LayerEmbedding
from headstart.modules.networks.normalization import Normalization
from headstart.modules.networks.preprocessing import Preprocessing
from headstart.modules.networks.taps import Tap
from headstart.output.errors import UserError
from headstart.tests.material.networks import random_photos

SIDE = 8
PLAIN = Preprocessing(SIDE, SIDE, (0, 0, 0), (1, 1, 1))


PHOTOS = random_photos(3, SIDE)
IMAGES = PHOTOS / 255


class Give(nn.Module):
    """A layer that computes a given function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def chain(**layers: Callable[..., Any]) -> nn.Sequential:
    """Build a network of named layers, each fed the output of the one before."""
    network = nn.Sequential()
    for name, layer in layers.items():
        network.add_module(name, layer if isinstance(layer, nn.Module) else Give(layer))
    return network


def pool(images: Tensor) -> Tensor:
    return images.mean((2, 3))


def to_tokens(images: Tensor) -> Tensor:
    patches = images.flatten(2).transpose(1, 2)
    return torch.cat([torch.full_like(patches[:, :1], 7), patches], 1)


def embedding(network: nn.Module, *taps: Tap, preprocessing: Preprocessing = PLAIN, **args: Any) -> LayerEmbedding:
    return LayerEmbedding("someone", network, taps, preprocessing, args)


def refusal(network: nn.Module, *taps: Tap, **args: Any) -> str:
    with pytest.raises(UserError) as caught:
        embedding(network, *taps, **args)
    message = str(caught.value)
    assert message.startswith("model 'someone': ")
    assert "\n" not in message
    assert not list_hooks(network)
    return message


def list_hooks(network: nn.Module) -> list[Any]:
    return [hook for m in network.modules() for hook in (*m._forward_hooks.values(), *m._forward_pre_hooks.values())]


@pytest.fixture(scope="module")
def resnet() -> nn.Module:
    torch.manual_seed(0)
    network: nn.Module = torchvision.models.resnet18().eval()
    return network


def test_example_of_the_contract(resnet: nn.Module) -> None:
    # The example names fc with the width that enters it, and no pooling: what enters it is the average pool.
    preprocessing = Preprocessing(64, 64)
    images = Normalization(preprocessing)(random_photos(2, 64))
    with torch.no_grad():
        maps, logits = create_feature_extractor(resnet, ["layer4"])(images)["layer4"], resnet(images)
    for tap, expected in [
        (Tap("fc", "flatten", 512), maps.mean((2, 3))),
        (Tap("fc", "flatten", 1000), logits),
        (Tap("penultimate", "flatten", 512), maps.mean((2, 3))),
        (Tap("penultimate", None, None), maps.mean((2, 3))),
        (Tap("logits", None, None), logits),
        (Tap("fc", None, None), logits),
        (Tap("layer4", "pool", 512), maps.mean((2, 3))),
        (Tap("layer4", "flatten", 2048), maps.flatten(1)),
        (Tap("avgpool", "flatten", 512), maps.mean((2, 3))),
    ]:
        model = embedding(resnet, tap, preprocessing=preprocessing)
        assert model.widths == [expected.shape[1]]
        torch.testing.assert_close(model(random_photos(2, 64)), expected, rtol=1e-5, atol=1e-6)
    message = refusal(resnet, Tap("fc", "flatten", 77), preprocessing=preprocessing)
    assert "layer 'fc' with embedding 'flatten': the output is [n, 1000] (1000 columns)" in message
    assert "the input is [n, 512] (512 columns), and output_dim is 77" in message
    message = refusal(resnet, Tap("fc", "pool", 512), preprocessing=preprocessing)
    assert "the input is [n, 512] (a vector has no positions to average), and output_dim is 512" in message


def test_strategy_that_does_not_apply_to_the_output_is_tried_on_the_input() -> None:
    network = chain(tokens=to_tokens, head=lambda tokens: tokens[:, 0])
    network.num_prefix_tokens = 1  # type: ignore[assignment]  # as timm declares it
    torch.testing.assert_close(embedding(network, Tap("head", "pool", 3))(PHOTOS), pool(IMAGES))
    assert torch.equal(embedding(network, Tap("head", "cls", 3))(PHOTOS), torch.full((3, 3), 7.0))


class Keywords(nn.Module):
    """Calls its head by keyword, and is called with one."""

    def __init__(self) -> None:
        super().__init__()
        self.head = Give(lambda *, scale, features: scale * features[:, :1])

    def forward(self, images: Tensor, scale: float = 1.0) -> Any:
        return self.head(scale=scale, features=pool(images))


def test_keyword_input_and_forward_arguments() -> None:
    taps = Tap("head", "flatten", 3), Tap("head", "flatten", 1)
    rows = embedding(Keywords(), *taps, scale=3.0)(PHOTOS)
    torch.testing.assert_close(rows, torch.cat([pool(IMAGES), 3 * pool(IMAGES)[:, :1]], 1))


def test_first_tensor_of_several() -> None:
    network = chain(pair=lambda x: (None, pool(x), x), last=lambda parts: [parts[1] + 1])
    torch.testing.assert_close(embedding(network, Tap("pair", "flatten", 3))(PHOTOS), pool(IMAGES))
    torch.testing.assert_close(embedding(network, Tap("last", "flatten", 3))(PHOTOS), pool(IMAGES) + 1)


def test_layers_that_overwrite_their_input() -> None:
    network = chain(stem=lambda x: pool(x) - 0.5, relu=nn.ReLU(inplace=True), head=nn.Linear(3, 2))
    taps = [Tap("stem", "flatten", 3), Tap("relu", "flatten", 3), Tap("head", "flatten", 3)]
    before = pool(IMAGES) - 0.5
    torch.testing.assert_close(
        embedding(network, *taps)(PHOTOS), torch.cat([before, before.clamp(min=0), before.clamp(min=0)], 1)
    )


def test_network_that_views_its_images() -> None:
    photos = PHOTOS.contiguous(memory_format=torch.channels_last)
    network = chain(view=lambda x: x.view(len(x), -1))
    torch.testing.assert_close(embedding(network, Tap("view", "flatten", 192))(photos), IMAGES.flatten(1))


def test_photos_along_another_axis() -> None:
    network = chain(stem=partial(torch.transpose, dim0=0, dim1=1))
    message = refusal(network, Tap("stem", None, None))
    assert "the output is [3, 2, 8, 8] (its first axis should have 2 entries, one per photo)" in message
    constant = chain(stem=lambda _: torch.ones(2, 4))
    model = embedding(constant, Tap("stem", "flatten", 4))
    with pytest.raises(UserError, match=r"is \[2, 4\] \(its first axis should have 3 entries"):
        model(PHOTOS)


def test_alias() -> None:
    network = chain(stem=pool, penultimate=lambda x: x + 1, head=nn.Linear(3, 2))
    torch.testing.assert_close(embedding(network, Tap("penultimate", None, None))(PHOTOS), pool(IMAGES) + 1)


def test_tokens_of_a_vision_transformer() -> None:
    network = timm.create_model("test_vit", depth=2, reg_tokens=4).eval()
    photos = random_photos(2, 160)
    preprocessing = Preprocessing(160, 160)
    with torch.no_grad():
        tokens = network.forward_features(Normalization(preprocessing)(photos))
        patches = network.patch_embed(Normalization(preprocessing)(photos))
    width = tokens.shape[2]
    for tap, expected in [
        (Tap("norm", "cls", width), tokens[:, 0]),
        (Tap("norm", "pool", width), tokens[:, 5:].mean(1)),
        (Tap("norm", "mean", width), tokens.mean(1)),
        (Tap("norm", None, None), tokens.mean(1)),
        (Tap("patch_embed", "pool", width), patches.flatten(1, -2).mean(1)),
    ]:
        rows = embedding(network, tap, preprocessing=preprocessing)(photos)
        torch.testing.assert_close(rows, expected, rtol=1e-4, atol=1e-5)


def test_stays_in_evaluation_mode_without_gradients() -> None:
    network = chain(stem=pool, dropout=nn.Dropout(0.5), head=nn.Linear(3, 2)).train()
    model = embedding(network, Tap("head", "flatten", 3)).train()
    assert not any(module.training for module in model.modules())
    rows = model(PHOTOS)
    torch.testing.assert_close(rows, pool(IMAGES))
    assert not rows.requires_grad


def test_layers_side_by_side() -> None:
    network = chain(stem=pool, twice=lambda x: 2 * x, head=nn.Linear(3, 2))
    model = embedding(network, *(Tap(layer, None, None) for layer in ("stem", "twice", "stem")))
    torch.testing.assert_close(model(PHOTOS), torch.cat([pool(IMAGES), 2 * pool(IMAGES), pool(IMAGES)], 1))
    assert not list_hooks(network)


def test_layers_that_cannot_be_taken() -> None:
    relu, once = nn.ReLU(), chain(stem=pool, head=nn.Linear(3, 2))
    twice = nn.Sequential(Give(pool), relu, relu)
    two_heads = timm.create_model("deit_tiny_distilled_patch16_224", depth=1)
    refused: list[tuple[nn.Module, Tap, dict[str, Any], str]] = [
        (twice, Tap("1", "flatten", 3), {}, "layer '1' is called 2 times in one forward pass; name a layer that is"),
        (once, Tap("haed", None, 3), {}, "no layer 'haed'; the closest name is head"),
        (Give(pool), Tap("fc", None, 3), {}, "the closest name is none"),
        (two_heads, Tap("penultimate", None, None), {}, "but there is head and head_dist; name a layer"),
        (chain(stem=pool), Tap("penultimate", "flatten", 3), {}, "but there is none"),
        (once, Tap("penultimate", "flatten", 2), {}, "layer 'head' with embedding 'flatten': the input is [n, 3] (3 "),
        (
            chain(words=lambda _: "words"),
            Tap("words", "flatten", 5),
            {},
            "the output is no tensor; the input is [n, 3",
        ),
        (Keywords(), Tap("head", "flatten", 3), {"size": 3}, "8 x 8 pixels with forward_args {'size': 3}: TypeError: "),
    ]
    for network, tap, arguments, words in refused:
        assert words in refusal(network, tap, **arguments)


passes = count()


def test_layers_that_draw_random_numbers_or_mix_photos() -> None:
    functions: list[Callable[[Tensor], Tensor]] = [
        lambda rows: functional.dropout(rows, 0.1, training=True),
        lambda rows: rows[:, next(passes) % 2 :],
        lambda rows: functional.batch_norm(rows, None, None, training=True),
        lambda rows: rows + rows[:1],
    ]
    for function in functions:
        network = chain(stem=nn.Flatten(), last=function)
        assert "layer 'last' returns other values in a second pass" in refusal(network, Tap("last", None, None))
        # Only the layer that is taken counts.
        torch.testing.assert_close(embedding(network, Tap("stem", None, 192))(PHOTOS), IMAGES.flatten(1))


def test_layers_that_return_the_same_values_but_for_rounding() -> None:
    state = torch.get_rng_state()
    functions: list[Callable[[Tensor], Tensor]] = [
        lambda rows: 0 * rows,
        lambda rows: rows + 1e-5 * torch.randn_like(rows),
        lambda rows: rows / rows.norm(dim=1, keepdim=True),
    ]
    for function in functions:
        assert embedding(chain(stem=nn.Flatten(), last=function), Tap("last", None, None)).widths == [192]
    assert torch.equal(torch.get_rng_state(), state)
