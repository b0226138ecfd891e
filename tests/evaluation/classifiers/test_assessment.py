"""What samples of known classes say: the accuracy that is found, wrong labels, and samples that cannot be scored."""

import numpy as np
import torch

from headstart.evaluation.classifiers.answer import NEARLY_ALL, doubtful_indices
from headstart.evaluation.classifiers.assessment import assess
from headstart.evaluation.classifiers.candidates import Labelled
from headstart.metrics.few_labels.expected_accuracy import tied_with


def make_samples(sizes: tuple[int, ...], distance: float) -> Labelled:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    centres = distance * torch.eye(len(sizes), 20)
    return Labelled(centres[labels] + torch.randn(len(labels), 20, generator=generator), labels, len(sizes))


def test_separate_classes_and_a_wrong_label() -> None:
    samples = make_samples((10, 10, 10), distance=12)
    samples.labels[4] = 2
    found = assess([samples], orderings=3, seed=0)
    assert [*np.flatnonzero(found.otherwise() >= NEARLY_ALL)] == [4]
    assert found.probabilities()[4].argmax() == 0
    assert found.expected.low < 29 / 30 < found.expected.high
    assert found.folds == 10


def test_labels_that_were_flipped_are_found() -> None:
    generator, found, flipped, wrong = np.random.default_rng(0), 0, 0, 0
    for draw in range(5):
        samples = make_samples((20,) * 5, distance=5)
        features = samples.features + 0.3 * torch.from_numpy(generator.standard_normal((100, 20))).float()
        changed = generator.choice(100, 5, replace=False)
        labels = samples.labels.clone()
        labels[changed] = (labels[changed] + torch.from_numpy(generator.integers(1, 5, 5))) % 5
        noted = {*doubtful_indices(labels.numpy(), assess([Labelled(features, labels, 5)], 3, seed=draw))}
        found, flipped, wrong = found + len(noted & {*changed}), flipped + 5, wrong + len(noted - {*changed})
    assert found >= 0.8 * flipped
    assert wrong <= 0.2 * flipped


def test_noise_is_known_as_noise() -> None:
    found = assess([make_samples((12, 12), distance=0)], orderings=3, seed=0)
    assert found.expected.low < 0.5 < found.expected.high
    assert abs(found.probabilities().max(1).mean() - 0.5) < 0.15


def test_the_only_sample_of_a_class_has_no_probabilities() -> None:
    found = assess([make_samples((6, 6, 1), distance=8)], orderings=3, seed=0)
    assert np.flatnonzero(np.isnan(found.probabilities()).any(1)).tolist() == [12]
    assert found.chosen.confusion()[2].sum() == 0


def test_the_better_backbone_is_chosen() -> None:
    weak, strong = make_samples((20, 20), distance=0), make_samples((20, 20), distance=9)
    found = assess([weak, strong], orderings=3, seed=0)
    assert found.best[0] == 1
    tied = tied_with(found.correct, found.expected.chosen)
    assert not any(flag for flag, (backbone, _) in zip(tied, found.methods, strict=True) if backbone == 0)
