"""A backbone that is trained plainly, and evaluated folded, from the weights as they are."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from itertools import chain, product
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.fx import GraphModule

from headstart.modules.networks.folding import FoldedNetwork, trace
from headstart.modules.networks.freeze_boundary import cut
from headstart.modules.networks.trainable_backbone import Precision, TrainableBackbone
from headstart.output.errors import UserError
from headstart.tests.material.cut_networks import CUTS, SIDE, build_cut
from headstart.tests.material.networks import random_photos

MOBILE = CUTS[0][:2]


def whole(precision: Precision = "float32", **options: Any) -> TrainableBackbone:
    backbone = build_cut(*MOBILE)
    return TrainableBackbone(backbone.network, backbone.normalize, precision, **options)


def evaluate(backbone: TrainableBackbone, inputs: Tensor) -> Tensor:
    with backbone.folded():
        features: Tensor = backbone(inputs)
    return features.clone()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "arguments", "boundary"), CUTS)
def test_folded_is_unfolded_to_rounding(name: str, arguments: dict[str, Any], boundary: str) -> None:
    backbone, photos = build_cut(name, arguments), random_photos(3)
    parts = cut(backbone, boundary)
    with torch.no_grad():
        expected, activations = backbone(photos), parts.stem(photos)
    for network, normalize, inputs in ((backbone.network, backbone.normalize, photos), (parts.tail, None, activations)):
        before = inputs.clone()
        for precision, tolerance in (("float32", 1e-5), ("bfloat16", 2e-2)):
            features = evaluate(TrainableBackbone(network, normalize, precision), inputs)  # type: ignore[arg-type]
            assert features.dtype == torch.float32
            assert (features - expected).norm() < tolerance * expected.norm()
            assert torch.equal(features, expected) == (tolerance < 1e-4 and not _norms(network) and name != CUTS[-1][0])
        assert torch.equal(inputs, before)


def _norms(network: nn.Module) -> int:
    return sum(isinstance(module, nn.BatchNorm2d) for module in network.modules())


class Small(nn.Module):
    """A convolution, batch norm and a linear layer, with statistics that are of consequence."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.convolution, self.norm, self.linear = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Linear(4, 4)
        for tensor in chain(self.parameters(), (self.norm.running_mean, self.norm.running_var)):
            assert tensor is not None
            nn.init.uniform_(tensor, 0.3, 1.0, generator=generator)
        self.eval()

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.linear(self.norm(self.convolution(images)).mean((2, 3)))
        return features


class Repeated(Small):
    """Calls its batch norm twice."""

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.norm(self.norm(self.convolution(images)).relu()).mean((2, 3))
        return features


def assert_folded_is_plain(network: nn.Module, precision: Precision = "float32") -> None:
    backbone = TrainableBackbone(network, None, precision)
    images = torch.rand(5, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = backbone(images)
    tolerance = 1e-5 if precision == "float32" else 2e-2
    assert (evaluate(backbone, images) - expected).norm() <= tolerance * expected.norm()


# What makes a layer do something else.
CHANGES: list[Callable[[Any], object]] = [
    lambda layer: layer.register_forward_hook(lambda _, __, output: output * 3),
    lambda layer: layer.register_forward_pre_hook(lambda _, inputs: inputs[0] * 3),
    lambda layer: setattr(layer, "forward", lambda inputs: type(layer).forward(layer, inputs) * 3),
]


def test_layers_that_are_called_twice_or_do_something_else_stay() -> None:
    repeated = Repeated()
    assert_folded_is_plain(repeated)
    assert _norms(FoldedNetwork(repeated, torch.float32).module) == 1
    for name, change in product(("convolution", "norm", "linear"), CHANGES):
        network = Small()
        layer = network.get_submodule(name)
        change(layer)
        assert_folded_is_plain(network)
        assert FoldedNetwork(network, torch.float32).module.get_submodule(name) is layer


class Undecided(Small):
    """Does something else when it is traced."""

    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images) * (1.0 if isinstance(images, Tensor) else 5.0)


def test_all_batch_norm_is_folded_but_where_tracing_does_not_see_the_code() -> None:
    assert_folded_is_plain(Undecided(), "float32")
    assert_folded_is_plain(Undecided(), "bfloat16")
    for name, arguments, _ in (CUTS[0], CUTS[2], CUTS[5]):
        backbone = TrainableBackbone(build_cut(name, arguments).network)
        evaluate(backbone, torch.rand(1, 3, SIDE, SIDE))
        assert backbone._folded is not None
        assert _norms(backbone.network)
        assert not _norms(backbone._folded.module)


def tensors(backbone: TrainableBackbone) -> Iterator[Tensor]:
    return chain(backbone.network.parameters(), backbone.network.buffers())


def test_weights_are_those_of_the_beginning() -> None:
    backbone, photos = whole("bfloat16"), random_photos(2)
    before = evaluate(backbone, photos)
    assert backbone._folded is not None
    folded = backbone._folded
    changed = deepcopy(backbone)
    for tensor, value in zip(*map(tensors, (changed, backbone)), strict=True):
        if tensor.is_floating_point():
            tensor.data = tensor.data * 1.01
            value.data.copy_(tensor.data)
    after = evaluate(backbone, photos)
    assert backbone._folded is folded
    assert not torch.equal(before, after)
    assert torch.equal(after, evaluate(changed, photos))


def test_a_layer_that_is_exchanged_is_seen() -> None:
    backbone, photos = whole(), random_photos(2)
    before = evaluate(backbone, photos)
    name, layer = next((name, each) for name, each in backbone.network.named_modules() if isinstance(each, nn.Conv2d))
    doubled = deepcopy(layer)
    doubled.weight.data *= 2
    backbone.network.set_submodule(name, doubled)
    assert not torch.equal(evaluate(backbone, photos), before)
    doubled.weight.data /= 2
    torch.testing.assert_close(evaluate(backbone, photos), before)


def test_nothing_is_left_of_an_evaluation() -> None:
    backbone, photos = whole("bfloat16", dropout=True, batch_norm="trained"), random_photos(4)
    modes = [module.training for module in backbone.modules()]
    assert True in modes
    state = {name: value.clone() for name, value in backbone.state_dict().items()}
    with suppress(ZeroDivisionError), backbone.folded():
        assert not any(module.training for module in backbone.modules())
        assert backbone(photos).requires_grad is False
        raise ZeroDivisionError
    assert [module.training for module in backbone.modules()] == modes
    assert list(backbone.state_dict()) == list(state)
    assert all(torch.equal(value, state[name]) for name, value in backbone.state_dict().items())
    other = deepcopy(backbone)
    assert other._folded is None
    assert torch.equal(evaluate(other, photos), evaluate(backbone, photos))
    assert backbone(photos).requires_grad


def test_evaluations_do_not_depend_on_the_precision_of_training() -> None:
    photos = random_photos(2)
    for precision in ("float32", "bfloat16"):
        backbone = whole(precision)
        alone = evaluate(backbone, photos)
        with torch.autocast("cpu", torch.bfloat16):
            assert torch.equal(evaluate(backbone, photos), alone)
            # Autocast caches outdated weights.
            backbone(photos)
            for parameter in backbone.parameters():
                parameter.data *= 1.1
            assert not torch.equal(evaluate(backbone, photos), alone)


def test_modes_are_as_asked_for() -> None:
    for batch_norm, dropout, mode in product(("frozen", "trained"), (False, True), (True, False)):
        backbone = whole(batch_norm=batch_norm, dropout=dropout).train(mode)
        expected = {nn.BatchNorm2d: mode and batch_norm == "trained", nn.Dropout: mode and dropout}
        modes = {(type(module), module.training) for module in backbone.network.modules() if type(module) in expected}
        assert modes == set(expected.items())


def test_statistics_are_trained() -> None:
    backbone, photos = whole(batch_norm="trained"), random_photos(8)
    before = {name: value.clone() for name, value in backbone.network.named_buffers() if "running" in name}
    evaluated = evaluate(backbone, photos)
    original = dict(backbone.network.named_buffers())
    assert all(torch.equal(original[name], value) for name, value in before.items())
    backbone(photos)
    assert not any(torch.equal(original[name], value) for name, value in before.items())
    assert not torch.equal(evaluate(backbone, photos), evaluated)
    with pytest.raises(UserError, match=r"^batch_norm: trained is given"):
        TrainableBackbone(nn.Linear(2, 2), batch_norm="trained")


class KeywordOnly(nn.Module):
    def forward(self, inputs: Tensor, shift: float = 1.0, *, scale: float = 2.0) -> Tensor:
        return inputs * scale + shift


def test_further_arguments_are_as_by_default() -> None:
    graph = trace(KeywordOnly())
    assert len(graph.find_nodes(op="placeholder")) == 1
    assert torch.equal(GraphModule(nn.Module(), graph)(torch.arange(3.0)), torch.tensor([1.0, 3.0, 5.0]))
