"""The results of `headstart fit`, as JSON values and a table of photos."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from headstart.evaluation.classifiers.assessment import Assessment
from headstart.evaluation.classifiers.forecast import forecast_rows
from headstart.evaluation.classifiers.given_photos import LabelledPhotos
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


def describe(labelled: LabelledPhotos, assessment: Assessment, names: Sequence[str]) -> dict[str, Any]:
    """Return the findings as JSON values.

    Args:
        labelled: The photos.
        assessment: Assessment by them.
        names: Names of the backbones.
    """
    labels, classes = labelled.photos.labels, labelled.photos.classes
    counts = np.bincount(labels, minlength=len(classes))
    expected, sizes, predictions = assessment.expected, assessment.sizes, assessment.chosen
    confusion, confidences = predictions.confusion(), predictions.probabilities().max(1)
    backbone, best = assessment.best
    method = METHODS[best.name].name
    tied = tied_with(assessment.correct, expected.chosen)
    return {
        "dataset": labelled.name,
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
            "error": calibration_error(confidences, predictions.predicted == predictions.labels),
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
        "doubtful_labels": _doubtful(labelled, assessment),
        "files_left_out": labelled.left_out,
        "repeated": labelled.repeated,
        "alike": labelled.alike,
        "contradicting": labelled.contradicting,
        "unreadable": labelled.unreadable,
        "warnings": _warnings(labelled),
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


def _doubtful(labelled: LabelledPhotos, assessment: Assessment) -> list[dict[str, Any]]:
    """Return photos that nearly all predictions take for another class, the surest first."""
    labels, classes, probabilities = labelled.photos.labels, labelled.photos.classes, assessment.probabilities()
    return [
        {
            "photo": labelled.photos.names[index],
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


def _warnings(labelled: LabelledPhotos) -> list[str]:
    warnings = []
    if labelled.single:
        warnings.append(
            f"class {', '.join(labelled.single)} has one photo: its accuracy cannot be estimated, and the expected "
            "accuracy is that of the other classes; add photos"
        )
    if labelled.contradicting:
        quoted = "; ".join(" = ".join(names) for names in labelled.contradicting[:QUOTED])
        warnings.append(f"{len(labelled.contradicting)} photos are in several classes: {quoted}; leave one of each")
    if labelled.unreadable:
        quoted = ", ".join(f"{name} ({reason})" for name, reason in [*labelled.unreadable.items()][:QUOTED])
        warnings.append(f"{len(labelled.unreadable)} photos cannot be decoded and are left out: {quoted}")
    return warnings


def photo_table(labelled: LabelledPhotos, assessment: Assessment) -> tuple[list[str], list[list[Any]]]:
    """Return columns and rows of `photos.csv`: what each photo is taken for while it is left out."""
    classes, otherwise = labelled.photos.classes, assessment.otherwise()
    rows: list[list[Any]] = []
    for index, shares in enumerate(assessment.probabilities()):
        row = ["", "", ""]
        if not np.isnan(shares).any():
            best = int(shares.argmax())
            row = [classes[best], f"{shares[best]:.4f}", f"{otherwise[index]:.3f}"]
        rows.append([labelled.photos.names[index], classes[labelled.photos.labels[index]], *row])
    return ["photo", "label", "predicted", "probability", "predicted_otherwise"], rows
