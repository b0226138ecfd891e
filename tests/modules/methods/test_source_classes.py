"""Where samples lie among the source classes, in plain cases."""

from dataclasses import replace

import pytest
import torch

from headstart.modules.method import Start
from headstart.modules.methods.source_classes import SourceClasses
from headstart.output.errors import UserError

START = Start(4, 2, range(1), max_samples=9, seed=0)
HEAD = torch.tensor([[3.0, 0, 0, 1], [0, 3, 0, 1], [0, 0, 3, 1]])


def test_a_sample_of_one_class_lies_at_its_centred_vector() -> None:
    sources = SourceClasses(replace(START, source_head=HEAD, source_bias=torch.zeros(3)), 0.1, "Method")
    placed = sources(torch.eye(4)[:3])
    expected = torch.nn.functional.normalize(HEAD - HEAD.mean(0), dim=-1)
    torch.testing.assert_close(placed, expected)


def test_temperature_divides_the_logits() -> None:
    bias, samples = torch.tensor([2.0, 0, -1]), torch.rand(5, 4)
    warm = SourceClasses(replace(START, source_head=5 * HEAD, source_bias=5 * bias), 5.0, "Method")
    plain = SourceClasses(replace(START, source_head=HEAD, source_bias=bias), 1.0, "Method")
    torch.testing.assert_close(warm(samples), plain(samples))


def test_biases_count() -> None:
    start = replace(START, source_head=HEAD, source_bias=torch.tensor([0.0, 0, 9]))
    sources = SourceClasses(start, 1.0, "Method")
    assert sources(torch.zeros(1, 4)).argmax() == 2


def test_source_head_is_required() -> None:
    with pytest.raises(UserError, match="Method needs the backbone's own classifier"):
        SourceClasses(START, 1.0, "Method")
