"""The results of `headstart fit`, as JSON values and a table of photos."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from headstart.evaluation.classifiers.assessment import Assessment
from headstart.evaluation.classifiers.forecast import forecast_rows
from headstart.evaluation.classifiers.given_photos import GivenPhotos
from headstart.metrics.arrays import Floats, Indices
from headstart.metrics.few_labels.calibration import calibration_error
from headstart.metrics.few_labels.expected_accuracy import LEVEL, tied_with
from headstart.modules.methods.catalogue import METHODS

# Names that a warning quotes.
QUOTED = 5
# More classes are described by the pairs that are confused alone.
MOST_IN_MATRIX = 30
MOST_PAIRS = 500
# A label looks wrong where a wrong one, if one in six is and takes any other class, is likelier than the label itself.
# docs/results/coverage.md says how many wrong labels this finds.
UNLIKELY = 0.2
# It does so if this share of the predictions, of all methods in all splits, says otherwise, too.
NEARLY_ALL = 0.9


def describe(given: GivenPhotos, assessment: Assessment, names: Sequence[str]) -> dict[str, Any]:
    """Return the findings as JSON values.

    Args:
        given: The photos.
        assessment: Assessment by them.
        names: Names of the backbones.
    """
    labels, classes = given.photos.labels, given.photos.classes
    counts = np.bincount(labels, minlength=len(classes))
    expected, sizes, chosen = assessment.expected, assessment.sizes, assessment.chosen
    backbone, best = assessment.best
    method, confusion, confidences = METHODS[best.name].name, chosen.confusion(), chosen.probabilities().max(1)
    tied = tied_with(assessment.correct, expected.chosen)
    return {
        "dataset": given.name,
        "photos": len(labels),
        "classes": dict(zip(classes, counts.tolist(), strict=True)),
        # The chosen method, and how accurate it will be.
        "method": method,
        "backbone": names[backbone],
        "expected_accuracy": {
            "estimate": expected.estimate,
            "interval": [expected.low, expected.high],
            "level": LEVEL,
            "uncorrected": expected.uncorrected,
        },
        # What it is to be compared with, and the mean of the accuracies of the classes.
        "chance": 1 / len(classes),
        "largest_class": float(counts.max() / len(labels)),
        "balanced_accuracy": float(np.diag(confusion)[confusion.any(1)].mean()),
        "calibration": {
            "temperature": assessment.temperature,
            "error": calibration_error(confidences, chosen.predicted == chosen.labels),
            "mean_probability": float(confidences.mean()),
            "accuracy": expected.uncorrected,
        },
        # All methods, by left-out predictions.
        "folds": assessment.folds,
        "splits": assessment.splits,
        "methods": [
            {"backbone": names[index], "method": METHODS[each.name].name, "accuracy": float(accuracy), "tied": is_tied}
            for (index, each), accuracy, is_tied in zip(
                assessment.methods, assessment.correct.mean(1), tied, strict=True
            )
        ],
        # More labels.
        "curve": [
            {"labels": size, "accuracy": float(values.mean()), "orderings": len(values)}
            for size, values in zip(sizes, assessment.curve, strict=True)
        ],
        "forecast": forecast_rows(sizes, assessment.curve, expected, len(labels), len(classes), method),
        # Classes and photos.
        "confusion": confusion.round(6).tolist() if len(classes) <= MOST_IN_MATRIX else None,
        "confused": _confused(confusion, classes),
        "doubtful_labels": _doubtful(given, assessment),
        "files_left_out": given.left_out,
        "repeated": given.repeated,
        "alike": given.alike,
        "contradicting": given.contradicting,
        "unreadable": given.unreadable,
        "warnings": _warnings(given),
    }


def _confused(confusion: Floats, classes: Sequence[str]) -> list[dict[str, Any]]:
    """Return pairs of a class and another one that it is taken for, the most frequent first."""
    shares = confusion * ~np.eye(len(classes), dtype=bool)
    order = np.argsort(-shares, axis=None, kind="stable")[:MOST_PAIRS]
    pairs = [np.unravel_index(position, shares.shape) for position in order]
    return [
        {"class": classes[row], "taken_for": classes[column], "share": float(shares[row, column])}
        for row, column in pairs
        if shares[row, column] > 0
    ]


def _doubtful(given: GivenPhotos, assessment: Assessment) -> list[dict[str, Any]]:
    """Return photos that nearly all predictions take for another class, the surest first."""
    labels, classes, probabilities = given.photos.labels, given.photos.classes, assessment.probabilities()
    return [
        {
            "photo": given.photos.names[index],
            "label": classes[labels[index]],
            "predicted": classes[int(probabilities[index].argmax())],
            "probability_of_label": float(probabilities[index, labels[index]]),
        }
        for index in doubtful_indices(labels, assessment)
    ]


def doubtful_indices(labels: Indices, assessment: Assessment) -> list[int]:
    """Return the samples whose labels look wrong, the surest first.

    Args:
        labels: The labels, `[samples]`.
        assessment: What was found by them.
    """
    probabilities = assessment.probabilities()
    of_label = probabilities[np.arange(len(labels)), labels]
    unlikely = of_label < UNLIKELY / (probabilities.shape[1] - 1)
    doubtful = np.flatnonzero((assessment.otherwise() >= NEARLY_ALL) & unlikely)
    return sorted(doubtful.tolist(), key=lambda index: float(of_label[index]))


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
    classes, otherwise = given.photos.classes, assessment.otherwise()
    rows: list[list[Any]] = []
    for index, shares in enumerate(assessment.probabilities()):
        row = ["", "", ""]
        if not np.isnan(shares).any():
            best = int(shares.argmax())
            row = [classes[best], f"{shares[best]:.4f}", f"{otherwise[index]:.3f}"]
        rows.append([given.photos.names[index], classes[given.photos.labels[index]], *row])
    return ["photo", "label", "predicted", "probability", "predicted_otherwise"], rows
