"""Fine-tuning is pulled back to where it started."""

import torch
from torch.optim import SGD

from headstart.modules import L2SP, GradientDescent
from headstart.tests.material.networks_to_train import begin, moved, staged, weights
from headstart.tests.material.streams import random_photos

RATE, ALPHA, BETA = 0.1, 0.3, 0.2


def test_steps_are_those_of_the_gradient_and_the_pull() -> None:
    method = begin(L2SP(ALPHA, BETA, lambda p: SGD(p, lr=RATE)), staged())
    start = weights(method)
    photos, labels = random_photos(3)
    for index in range(3):
        plain = begin(GradientDescent(lambda p: SGD(p, lr=RATE)), staged())
        plain.load_state_dict(method.state_dict())
        before, head = weights(method), method.state_dict()["weight"].clone()
        for each in (method, plain):
            each.adapt(photos[:, index : index + 1], labels[:, index : index + 1])
        for name, value in weights(method).items():
            expected = weights(plain)[name] - RATE * ALPHA * (before[name] - start[name])
            torch.testing.assert_close(value, expected)
        torch.testing.assert_close(method.state_dict()["weight"], plain.state_dict()["weight"] - RATE * BETA * head)
    assert any(not torch.equal(value, start[name]) for name, value in weights(method).items())


def test_a_strong_pull_holds_the_backbone() -> None:
    loose, pulled = (begin(L2SP(alpha, 0, lambda p: SGD(p, lr=0.01)), staged()) for alpha in (0, 90))
    start = weights(pulled)
    moved(loose, 40)
    moved(pulled, 40)
    distances = [sum((value - start[name]).norm() for name, value in weights(each).items()) for each in (loose, pulled)]
    assert distances[1] < distances[0] / 4
