"""Every strategy on every shape, against closed forms, and the prefix tokens that networks declare."""

from collections.abc import Callable
from typing import Any

import pytest
import timm
import torch
import torchvision
from torch import Tensor, nn

from headstart.modules.networks.embedding_strategy import InapplicableError, Prefix, embed
from headstart.modules.networks.taps import Strategy

CLASSIFIED = Prefix(1, has_class_token=True)


def count_up(*shape: int) -> Tensor:
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape)


MAP = count_up(2, 3, 4, 4)
TOKENS = count_up(2, 5, 3)
VECTOR = count_up(2, 3)


def test_closed_forms() -> None:
    cases: list[tuple[Tensor, Strategy, Tensor]] = [
        # The values of one channel of a map are 16 consecutive numbers, whose mean lies 7.5 above the first.
        (MAP, "pool", MAP[:, :, 0, 0] + 7.5),
        (MAP, "mean", MAP[:, :, 0, 0] + 7.5),
        (MAP, "flatten", count_up(2, 48)),
        (TOKENS, "pool", TOKENS[:, 1] + 4.5),
        (TOKENS, "mean", TOKENS[:, 0] + 6),
        (TOKENS, "cls", TOKENS[:, 0]),
        (TOKENS, "flatten", count_up(2, 15)),
        (VECTOR, "flatten", VECTOR),
    ]
    for values, strategy, expected in cases:
        assert torch.equal(embed(values, strategy, CLASSIFIED), expected)
        if values.ndim == 4 and strategy != "flatten":
            assert torch.equal(embed(values.permute(0, 2, 3, 1), strategy, CLASSIFIED), expected)
        # The usual strategy of a shape.
        if (values.ndim, strategy) in ((4, "pool"), (3, "mean"), (2, "flatten")):
            assert torch.equal(embed(values, None, CLASSIFIED), expected)


def test_strategies_that_make_no_sense() -> None:
    refused: list[tuple[Tensor, Strategy | None, Prefix, str]] = [
        (MAP, "cls", CLASSIFIED, "a spatial map has no class token"),
        (VECTOR, "pool", CLASSIFIED, "a vector has no positions"),
        (count_up(2, 3, 4, 5, 6), None, CLASSIFIED, "5 axes are neither"),
        (TOKENS[:, :1], "pool", CLASSIFIED, "1 tokens, 1 of them before the patches"),
        (MAP.to(torch.complex64), "pool", CLASSIFIED, "complex numbers are no embedding"),
        (TOKENS, "cls", Prefix(), "declares no class token"),
        (TOKENS, "cls", Prefix(1, has_class_token=True, patches=5), "declares no class token"),
    ]
    for values, strategy, prefix, reason in refused:
        with pytest.raises(InapplicableError, match=reason):
            embed(values, strategy, prefix)


def test_maps_with_channels_first_or_last() -> None:
    # A cube, and a map that is not square, which no photo results in.
    for shape in ((3, 3, 3), (4, 3, 3), (8, 16, 16), (2, 3, 4)):
        values = count_up(2, *shape)
        assert torch.equal(embed(values, "pool", Prefix()), values.mean((2, 3)))
    for shape in ((3, 3, 4), (4, 4, 3)):
        values = count_up(2, *shape)
        assert torch.equal(embed(values, "pool", Prefix()), values.mean((1, 2)))


def test_rows_are_float32_in_memory_of_their_own() -> None:
    cases: list[tuple[Tensor, Strategy]] = [(MAP, "pool"), (TOKENS, "cls"), (VECTOR, "flatten")]
    for shape, strategy in cases:
        values = shape.clone()
        rows = embed(values, strategy, CLASSIFIED)
        before = rows.clone()
        values.zero_()
        assert torch.equal(rows, before)
        assert embed(values.bfloat16(), strategy, CLASSIFIED).dtype == torch.float32
    values = torch.ones(1, 1, 40, 40, dtype=torch.bfloat16)
    values[..., 0] = 2  # the mean, 1.025, is no number of bfloat16
    torch.testing.assert_close(embed(values, "pool", Prefix()), torch.tensor([[1.025]]))


class Prefixed(nn.Module):
    """A network that says how many prefix tokens it has, and nothing of a class token."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.num_prefix_tokens = count


def small_vit(**args: Any) -> nn.Module:
    network: nn.Module = timm.create_model("test_vit", depth=1, **args)
    return network


@pytest.mark.parametrize(
    ("make", "layer", "expected"),
    [
        (lambda: small_vit(), "blocks.0", Prefix(1, True, 100)),
        (lambda: small_vit(class_token=False, global_pool="avg"), "blocks.0", Prefix(0, False, 100)),
        (lambda: small_vit(reg_tokens=4), "blocks.0.attn", Prefix(5, True, 100)),
        (lambda: nn.ModuleDict({"visual": small_vit()}), "visual.norm", Prefix(1, True, 100)),
        (lambda: Prefixed(2), "", Prefix(2, True)),
        (lambda: torchvision.models.VisionTransformer(32, 16, 1, 2, 8, 8), "encoder.ln", Prefix(1, True)),
        (lambda: timm.create_model("mixer_s32_224"), "blocks.0", Prefix()),
    ],
)
def test_declared_prefix_tokens(make: Callable[[], nn.Module], layer: str, expected: Prefix) -> None:
    assert Prefix.around(make(), layer) == expected


def test_sequence_before_the_class_token_is_put_in_front() -> None:
    patches = count_up(1, 4, 2)
    prefix = Prefix(1, has_class_token=True, patches=4)
    assert torch.equal(embed(patches, "pool", prefix), patches.mean(1))
    assert torch.equal(embed(count_up(1, 5, 2), "pool", prefix), count_up(1, 5, 2)[:, 1:].mean(1))
