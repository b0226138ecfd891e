"""The answer of `headstart fit`: JSON values, tables, sentences and a page."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from headstart.evaluation.classifiers.assessment import Assessment, forecast_rows
from headstart.evaluation.classifiers.labelled_photos import LabelledPhotos
from headstart.metrics.arrays import Floats, Indices
from headstart.metrics.few_labels.calibration import calibration_error
from headstart.metrics.few_labels.expected_accuracy import LEVEL, tied_with
from headstart.modules.methods.catalogue import METHODS
from headstart.output.markup import escape_markdown
from headstart.output.printable import print_lines
from headstart.output.tables import Table, format_number, markdown_tables, print_tables

# Names that a warning or the screen quotes.
QUOTED = 5
# More classes are described by the pairs that are confused alone.
MOST_IN_MATRIX = 30
MOST_PAIRS = 500
# A label looks wrong where a wrong one, if one in six is and takes any other class, is likelier than the label itself.
# docs/results/coverage.md says how many wrong labels this finds.
UNLIKELY = 0.2
# It does so if this share of the predictions, of all methods in all splits, says otherwise, too.
NEARLY_ALL = 0.9
# Pairs that the screen quotes.
QUOTED_PAIRS = 3
# A calibration error above this is explained.
LARGE_ERROR = 0.1


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
            {"backbone": names[index], "method": METHODS[trial.name].name, "accuracy": float(accuracy), "tied": is_tied}
            for (index, trial), accuracy, is_tied in zip(
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
    return [
        {"class": classes[row], "taken_for": classes[column], "share": float(shares[row, column])}
        for row, column in zip(*np.unravel_index(order, shares.shape), strict=True)
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


def print_answer(document: Mapping[str, Any]) -> None:
    """Print the tables of accuracies, and the sentences."""
    print_tables(_accuracy_tables(document))
    print_lines(["", *_sentences(document)], indent=2)


def _accuracy_tables(document: Mapping[str, Any]) -> list[Table]:
    """Return the tables of methods, the best first, of the learning curve, and of the expected accuracy."""
    classes, expected = len(document["classes"]), document["expected_accuracy"]
    methods = [["method", "left-out accuracy", "significantly worse"]]
    for trial in sorted(document["methods"], key=lambda trial: -trial["accuracy"]):
        methods.append([_name(document, trial), f"{trial['accuracy']:.1%}", "" if trial["tied"] else "yes"])

    curve = [["labels", "per class", "accuracy"]]
    for point in document["curve"]:
        curve.append([str(point["labels"]), f"{point['labels'] / classes:g}", f"{point['accuracy']:.1%}"])

    accuracies = [["labels", "per class", "expected accuracy"]]
    forecasts = [(point, f" forecast, {point['level']:.0%}") for point in document["forecast"]]
    for point, kind in [({**expected, "labels": document["photos"]}, ""), *forecasts]:
        low, high = point["interval"]
        per_class = f"{round(point['labels'] / classes, 1):g}"
        accuracies.append([str(point["labels"]), per_class, f"{point['estimate']:.1%} [{low:.0%}, {high:.0%}]{kind}"])

    return [
        Table(f"Left-out accuracy, {document['photos']} photos", methods),
        Table("Learning curve", curve),
        Table("Expected accuracy of all labels, and the forecast for more", accuracies),
    ]


def _name(document: Mapping[str, Any], trial: Mapping[str, Any]) -> str:
    """Return the name of a method, with its backbone where there are several."""
    several = len({method["backbone"] for method in document["methods"]}) > 1
    return f"{trial['method']} ({trial['backbone']})" if several else str(trial["method"])


def _sentences(document: Mapping[str, Any]) -> list[str]:
    """Return the answer in sentences."""
    expected = document["expected_accuracy"]
    low, high = expected["interval"]
    trial = {"method": document["method"], "backbone": document["backbone"]}
    tied = [_name(document, method) for method in document["methods"] if method["tied"]]
    others = [name for name in tied if name != _name(document, trial)]
    accuracy = document["calibration"]["accuracy"]
    is_short = len(document["curve"]) < 2
    reason = "too few labels" if is_short else "the last points of the learning curve do not rise"

    return [
        f"chosen: {trial['method']} on {trial['backbone']}; expected accuracy on further photos like these "
        f"{expected['estimate']:.1%} [{low:.1%}, {high:.1%}], a 95 % interval",
        f"to compare: chance {document['chance']:.1%}, always the largest class {document['largest_class']:.1%}; left "
        f"out {accuracy:.1%}, as the mean over classes {document['balanced_accuracy']:.1%}",
        f"not significantly worse: {', '.join(others) or 'none'}",
        *_about_photos(document),
        _about_probabilities(document["calibration"]),
        *([] if document["forecast"] else [f"no forecast: {reason}"]),
        *(f"WARNING: {warning}" for warning in document["warnings"]),
    ]


def _about_probabilities(calibration: Mapping[str, Any]) -> str:
    """Return the calibration error, and what it means where it is large."""
    error, probability, accuracy = (calibration[key] for key in ("error", "mean_probability", "accuracy"))
    text = f"probabilities: calibration error {format_number(100 * error, '.1f')} points"
    if error <= LARGE_ERROR:
        return text
    if abs(probability - accuracy) < error / 2:
        return f"{text}: too high for some photos and too low for others; with few photos most of it may be chance"
    way, often = ("low", "more") if probability < accuracy else ("high", "less")
    return (
        f"{text}: too {way}, {probability:.0%} on average where {accuracy:.0%} were right; a prediction with 70 % is "
        f"right {often} often than that"
    )


def _about_photos(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield sentences on confused classes, labels that look wrong, and copies."""
    if document["confused"]:
        pairs = [
            f"{pair['class']} as {pair['taken_for']} {pair['share']:.0%}"
            for pair in document["confused"][:QUOTED_PAIRS]
        ]
        yield f"most often confused: {', '.join(pairs)}"

    doubtful = [
        f"{photo['photo']} ({photo['label']}, predicted {photo['predicted']})" for photo in document["doubtful_labels"]
    ]
    quoted = f"{len(doubtful)}: {', '.join(doubtful[:QUOTED])}; see photos.csv"
    yield f"labels that look wrong: {quoted if doubtful else 'none'}"

    copies = [" = ".join(names) for names in document["repeated"]] + [" ~ ".join(names) for names in document["alike"]]
    yield f"duplicates, counted once: {len(copies)}" + "".join(f"; {copy}" for copy in copies[:QUOTED])


def markdown_page(document: Mapping[str, Any]) -> str:
    """Return the page."""
    classes, tables = list(document["classes"]), _accuracy_tables(document)
    if document["confusion"] is not None:
        shares = [[f"{share:.0%}" for share in row] for row in document["confusion"]]
        rows = [["class", *classes], *([name, *row] for name, row in zip(classes, shares, strict=True))]
        tables.append(Table("Confusion", rows, about="Share of each class, by rows, that is taken for each."))
    if document["doubtful_labels"]:
        rows = [["photo", "label", "predicted", "probability of the label"]]
        rows += [
            [photo["photo"], photo["label"], photo["predicted"], f"{photo['probability_of_label']:.3f}"]
            for photo in document["doubtful_labels"]
        ]
        tables.append(Table("Labels that look wrong", rows))

    about = (
        f"{document['photos']} photos of {len(classes)} classes, without a validation set: every accuracy is measured "
        f"on photos that were left out of training, {document['splits']} times in {document['folds']} folds. Each "
        "point of the learning curve predicts the photos that come next."
    )
    sentences = "\n".join(f"- {escape_markdown(sentence)}" for sentence in _sentences(document))
    title = f"# Classifier for {escape_markdown(str(document['dataset']))}"
    return "\n\n".join([title, about, sentences, markdown_tables(tables)])
