"""The head alone is trained for the first samples, then everything."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam

from headstart.modules.method import Method, MethodStart
from headstart.modules.methods.gradient_descent import GradientDescent
from headstart.modules.methods.linear_probe_then_fine_tune import LinearProbeThenFineTune


@pytest.fixture
def backbone() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(12, 6), nn.Tanh())


def begin(method: Method, backbone: nn.Module | None) -> None:
    method.begin(MethodStart(6, 2, range(1), max_samples=50, seed=0, backbone=backbone))
    method.build_optimizers()


def batches(count: int, size: int) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(size)
    photos = torch.randn(count, 1, size, 3, 2, 2, generator=generator)
    return list(zip(photos, torch.randint(2, (count, 1, size), generator=generator), strict=True))


def weights(method: Method) -> dict[str, Tensor]:
    assert method.backbone is not None
    return {name: value.clone() for name, value in method.backbone.state_dict().items()}


@pytest.mark.parametrize(("probe_samples", "size", "probed"), [(8, 1, 8), (9, 4, 3)])
def test_backbone_moves_only_after_the_probe(backbone: nn.Module, probe_samples: int, size: int, probed: int) -> None:
    method = LinearProbeThenFineTune(probe_samples)
    begin(method, backbone)
    before = weights(method)
    for step, batch in enumerate(batches(probed + 2, size), start=1):
        head = method.weight.detach().clone()
        method.adapt(*batch)
        assert not torch.equal(method.weight, head)
        unchanged = [torch.equal(value, before[name]) for name, value in weights(method).items()]
        assert unchanged == [step <= probed] * len(before)


def test_probe_is_the_baseline_on_frozen_features(backbone: nn.Module) -> None:
    size = 4
    make_optimizer: Callable[..., torch.optim.Optimizer] = lambda p: Adam(p, lr=1e-2)  # noqa: E731
    method = LinearProbeThenFineTune(10 * size, lambda p: SGD(p, lr=9), make_optimizer)
    baseline = GradientDescent(make_optimizer)
    begin(method, backbone)
    begin(baseline, None)
    for photos, labels in batches(10, size):
        method.adapt(photos, labels)
        with torch.no_grad():
            features = backbone(photos[0])[None]
        baseline.adapt(features, labels)
        torch.testing.assert_close(method.weight, baseline.weight, rtol=0, atol=1e-6)
        torch.testing.assert_close(method.bias, baseline.bias, rtol=0, atol=1e-6)


def test_afterwards_the_whole_network_is_trained_by_its_own_optimiser(backbone: nn.Module) -> None:
    method = LinearProbeThenFineTune(4, lambda p: SGD(p, lr=0.1))
    begin(method, backbone)
    first, second = batches(2, 4)
    method.adapt(*first)
    fine_tuned = GradientDescent(lambda p: SGD(p, lr=0.1))
    begin(fine_tuned, backbone)
    fine_tuned.load_state_dict(method.state_dict())
    for each in (method, fine_tuned):
        each.adapt(*second)
    for name, value in fine_tuned.state_dict().items():
        torch.testing.assert_close(method.state_dict()[name], value, rtol=0, atol=1e-7)
