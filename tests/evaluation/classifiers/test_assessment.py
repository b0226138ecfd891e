"""What samples of known classes say: the accuracy that is found, wrong labels, and samples that cannot be scored."""

import numpy as np
import torch

from headstart.evaluation.classifiers.assessment import NEARLY_ALL, assess
from headstart.evaluation.classifiers.candidates import Labelled
from headstart.evaluation.classifiers.document import is_flat


def make_samples(sizes: tuple[int, ...], distance: float) -> Labelled:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    centres = distance * torch.eye(len(sizes), 20)
    return Labelled(centres[labels] + torch.randn(len(labels), 20, generator=generator), labels, len(sizes))


def test_separate_classes_and_a_wrong_label() -> None:
    samples = make_samples((10, 10, 10), distance=12)
    samples.labels[4] = 2
    found = assess([samples], orderings=3, seed=0)
    assert [*np.flatnonzero(found.otherwise >= NEARLY_ALL)] == [4]
    assert found.probabilities[4].argmax() == 0
    assert found.expected.low < 29 / 30 < found.expected.high
    assert found.folds == 10


def test_noise_is_known_as_noise() -> None:
    found = assess([make_samples((12, 12), distance=0)], orderings=3, seed=0)
    assert found.expected.low < 0.5 < found.expected.high
    assert abs(found.probabilities.max(1).mean() - 0.5) < 0.15


def test_the_only_sample_of_a_class_has_no_probabilities() -> None:
    found = assess([make_samples((6, 6, 1), distance=8)], orderings=3, seed=0)
    assert np.flatnonzero(np.isnan(found.probabilities).any(1)).tolist() == [12]
    assert found.confusion[2].sum() == 0


def test_the_better_backbone_is_chosen() -> None:
    weak, strong = make_samples((20, 20), distance=0), make_samples((20, 20), distance=9)
    found = assess([weak, strong], orderings=3, seed=0)
    assert found.best.backbone == 1
    assert not any(tied for tied, trial in zip(found.tied, found.trials, strict=True) if trial.backbone == 0)


def test_a_curve_is_flat_where_many_labels_gained_nothing() -> None:
    assert is_flat([100, 200, 400], [0.9, 0.95, 0.955], classes=2)
    assert not is_flat([100, 200, 400], [0.9, 0.93, 0.955], classes=2)
    assert not is_flat([10, 20, 40], [0.9, 0.9, 0.9], classes=2)
    assert not is_flat([], [], classes=2)
