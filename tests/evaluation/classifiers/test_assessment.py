"""What samples of known classes say: the accuracy that is found, wrong labels, and samples that cannot be scored."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from headstart.datamodules.photos.drawn_photos import DrawnPets
from headstart.evaluation.classifiers.assessment import NEARLY_ALL, assess
from headstart.evaluation.classifiers.candidates import Labelled
from headstart.evaluation.classifiers.document import describe, doubtful_indices, is_flat
from headstart.evaluation.classifiers.given_photos import GivenPhotos
from headstart.evaluation.classifiers.texts import sentences


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


def test_a_curve_is_flat_where_twice_the_labels_gained_nothing() -> None:
    sizes, accuracies = [100, 200, 300], [0.9, 0.95, 0.8]
    assert is_flat(sizes, accuracies, labels=400, expected=0.955)
    assert not is_flat(sizes, accuracies, labels=400, expected=0.965)
    assert not is_flat(sizes, accuracies, labels=399, expected=0.955)
    assert not is_flat([], [], labels=2, expected=0.5)


@pytest.mark.parametrize(("photos", "distance", "advised"), [(200, 1.0, True), (198, 1.0, False), (200, 12.0, False)])
def test_fine_tuning_is_advised_where_many_labels_leave_many_errors(
    photos: int, distance: float, advised: bool
) -> None:
    drawings = DrawnPets(train_size=photos).train()
    samples = make_samples((photos // 2, photos // 2), distance)
    labels = torch.from_numpy(drawings.labels)
    in_their_order = replace(samples, features=samples.features[labels.argsort().argsort()], labels=labels)
    document = describe(GivenPhotos("pets", drawings, {}), assess([in_their_order], orderings=3, seed=0), ["backbone"])
    assert (document["expected_accuracy"]["estimate"] < 0.9) == (distance == 1)
    assert document["is_fine_tuning_advised"] == advised
    assert any("fine-tuning" in sentence for sentence in sentences(document)) == advised
