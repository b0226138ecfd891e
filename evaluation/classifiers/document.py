"""The results of `headstart fit`, as JSON values and a table of photos."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from headstart.evaluation.classifiers.assessment import NEARLY_ALL, Assessment
from headstart.evaluation.classifiers.forecast import forecast_rows
from headstart.evaluation.classifiers.given_photos import GivenPhotos
from headstart.metrics.arrays import Indices
from headstart.metrics.few_labels.expected_accuracy import LEVEL

# Names that a warning quotes.
QUOTED = 5
# More classes are described by the pairs that are confused alone, of which so many are listed.
MOST_IN_MATRIX, MOST_PAIRS = 100, 500
# A curve is flat if twice the labels gained less than this, with so many labels per class.
FLAT_GAIN, MANY_LABELS = 0.01, 100
# A label looks wrong where a wrong one, if one in six is and takes any other class, is likelier than the label itself.
# docs/results/coverage.md says how many wrong labels this finds.
UNLIKELY = 0.2
# With as many, fine-tuning was mostly better than heads of a lower accuracy (docs/fine_tuning.md).
LOW_ACCURACY = 0.9


def describe(given: GivenPhotos, assessment: Assessment, names: Sequence[str]) -> dict[str, Any]:
    """Return the findings as JSON values.

    Args:
        given: The photos.
        assessment: Assessment by them.
        names: Names of the backbones.
    """
    labels, classes = given.photos.labels, given.photos.classes
    counts = np.bincount(labels, minlength=len(classes))
    best, expected, sizes = assessment.best, assessment.expected, assessment.sizes
    means = [float(values.mean()) for values in assessment.curve]
    has_many = len(labels) >= MANY_LABELS * len(classes)
    return {
        "dataset": given.name,
        "photos": len(labels),
        "classes": dict(zip(classes, counts.tolist(), strict=True)),
        # The chosen method, and how accurate it will be.
        "method": best.method,
        "backbone": names[best.backbone],
        "expected_accuracy": {
            "estimate": expected.estimate,
            "interval": [expected.low, expected.high],
            "level": LEVEL,
            "uncorrected": expected.uncorrected,
        },
        # What it is to be compared with, and the mean of the accuracies of the classes.
        "chance": 1 / len(classes),
        "largest_class": float(counts.max() / len(labels)),
        "balanced_accuracy": float(np.diag(assessment.confusion)[assessment.confusion.any(1)].mean()),
        "calibration": {
            "temperature": assessment.temperature,
            "error": assessment.calibration_error,
            "mean_probability": assessment.confidence,
            "accuracy": expected.uncorrected,
        },
        # All methods, by left-out predictions.
        "folds": assessment.folds,
        "splits": assessment.splits,
        "methods": [
            {"backbone": names[trial.backbone], "method": trial.method, "accuracy": float(accuracy), "tied": tied}
            for trial, accuracy, tied in zip(assessment.trials, assessment.accuracies, assessment.tied, strict=True)
        ],
        # More labels.
        "curve": [
            {"labels": size, "accuracy": mean, "orderings": len(values)}
            for size, mean, values in zip(sizes, means, assessment.curve, strict=True)
        ],
        "forecast": forecast_rows(sizes, assessment.curve, expected, len(labels), len(classes), best.method),
        "is_flat": has_many and is_flat(sizes, means, len(labels), expected.estimate),
        "is_fine_tuning_advised": has_many and expected.estimate < LOW_ACCURACY,
        # Classes and photos.
        "confusion": assessment.confusion.round(6).tolist() if len(classes) <= MOST_IN_MATRIX else None,
        "confused": _confused(assessment, classes),
        "doubtful_labels": _doubtful(given, assessment),
        "files_left_out": given.left_out,
        "repeated": given.repeated,
        "alike": given.alike,
        "contradicting": given.contradicting,
        "unreadable": given.unreadable,
        "warnings": _warnings(given),
    }


def is_flat(sizes: Sequence[int], accuracies: Sequence[float], labels: int, expected: float) -> bool:
    """Whether twice the labels have gained less than a point.

    Args:
        sizes: Labels at each point of the curve.
        accuracies: Accuracies there.
        labels: Number of all labels.
        expected: Their expected accuracy.
    """
    half = [accuracy for size, accuracy in zip(sizes, accuracies, strict=True) if 2 * size <= labels]
    return bool(half) and expected - half[-1] < FLAT_GAIN


def _confused(assessment: Assessment, classes: Sequence[str]) -> list[dict[str, Any]]:
    """Return pairs of a class and another one that it is taken for, the most frequent first."""
    shares = assessment.confusion * ~np.eye(len(classes), dtype=bool)
    order = np.argsort(-shares, axis=None, kind="stable")[:MOST_PAIRS]
    pairs = [np.unravel_index(position, shares.shape) for position in order]
    return [
        {"class": classes[row], "taken_for": classes[column], "share": float(shares[row, column])}
        for row, column in pairs
        if shares[row, column] > 0
    ]


def _doubtful(given: GivenPhotos, assessment: Assessment) -> list[dict[str, Any]]:
    """Return photos that nearly all predictions take for another class, the surest first."""
    labels, classes = given.photos.labels, given.photos.classes
    own = assessment.probabilities[np.arange(len(labels)), labels]
    return [
        {
            "photo": given.photos.names[index],
            "label": classes[labels[index]],
            "predicted": classes[int(assessment.probabilities[index].argmax())],
            "probability_of_label": float(own[index]),
        }
        for index in doubtful_indices(labels, assessment)
    ]


def doubtful_indices(labels: Indices, assessment: Assessment) -> list[int]:
    """Return the samples whose labels look wrong, the surest first.

    Args:
        labels: The labels, `[samples]`.
        assessment: What was found by them.
    """
    own = assessment.probabilities[np.arange(len(labels)), labels]
    unlikely = own < UNLIKELY / (assessment.probabilities.shape[1] - 1)
    found = np.flatnonzero((assessment.otherwise >= NEARLY_ALL) & unlikely)
    return sorted(found.tolist(), key=lambda index: float(own[index]))


def _warnings(given: GivenPhotos) -> list[str]:
    warnings = []
    if given.single:
        warnings.append(
            f"class {', '.join(given.single)} has one photo: its accuracy cannot be estimated, and the expected "
            "accuracy is that of the other classes; add photos"
        )
    if given.contradicting:
        quoted = "; ".join(" = ".join(names) for names in given.contradicting[:QUOTED])
        warnings.append(f"{len(given.contradicting)} photos are in several classes: {quoted}; leave one of each")
    if given.unreadable:
        quoted = ", ".join(f"{name} ({reason})" for name, reason in [*given.unreadable.items()][:QUOTED])
        warnings.append(f"{len(given.unreadable)} photos cannot be decoded and are left out: {quoted}")
    return warnings


def photo_table(given: GivenPhotos, assessment: Assessment) -> tuple[list[str], list[list[Any]]]:
    """Return columns and rows of `photos.csv`: what each photo is taken for while it is left out."""
    labels, classes = given.photos.labels, given.photos.classes
    rows: list[list[Any]] = []
    for index, name in enumerate(given.photos.names):
        found = assessment.probabilities[index]
        if np.isnan(found).any():
            rows.append([name, classes[labels[index]], "", "", ""])
            continue
        best = int(found.argmax())
        numbers = [f"{found[best]:.4f}", f"{assessment.otherwise[index]:.3f}"]
        rows.append([name, classes[labels[index]], classes[best], *numbers])
    return ["photo", "label", "predicted", "probability", "predicted_otherwise"], rows
