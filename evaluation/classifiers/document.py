"""What `headstart fit` has found, as JSON, tables, sentences and figures."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headstart.evaluation.classifiers.assessment import NEARLY_ALL, Assessment
from headstart.evaluation.classifiers.forecast import forecast_rows
from headstart.evaluation.classifiers.given_photos import GivenPhotos
from headstart.output.markup import escape_markdown
from headstart.output.tables import Cells, format_number, markdown_report

# Names and pairs that the screen quotes.
QUOTED = 5
# More classes are described by the pairs that are confused alone, of which so many are listed.
MOST_IN_MATRIX, MOST_PAIRS = 100, 500
# A curve is flat if twice the labels gained less than this, with so many labels per class.
FLAT_GAIN, FLAT_LABELS = 0.01, 100


def describe(given: GivenPhotos, assessment: Assessment, names: Sequence[str]) -> dict[str, Any]:
    """Return the findings as JSON values.

    Args:
        given: The photos.
        assessment: What they say.
        names: Names of the backbones.
    """
    labels, classes = given.photos.labels, given.photos.classes
    best, expected = assessment.best, assessment.expected
    curve = [
        {"labels": size, "accuracy": float(values.mean()), "orderings": len(values)}
        for size, values in zip(assessment.sizes, best.curve, strict=True)
    ]
    return {
        "dataset": given.name,
        "photos": len(labels),
        "classes": dict(zip(classes, np.bincount(labels, minlength=len(classes)).tolist(), strict=True)),
        "method": best.method,
        "backbone": names[best.backbone],
        "expected_accuracy": {
            "estimate": expected.estimate,
            "interval": [expected.low, expected.high],
            "level": 0.95,
            "uncorrected": expected.uncorrected,
        },
        "folds": assessment.folds,
        "splits": assessment.splits,
        "methods": [
            {"backbone": names[trial.backbone], "method": trial.method, "accuracy": float(accuracy), "tied": tied}
            for trial, accuracy, tied in zip(assessment.trials, assessment.accuracies, assessment.tied, strict=True)
        ],
        "curve": curve,
        "forecast": forecast_rows(assessment.sizes, best.curve, expected, len(labels), len(classes), best.method),
        "confusion": assessment.confusion.round(6).tolist() if len(classes) <= MOST_IN_MATRIX else None,
        "confused": _confused(assessment, classes),
        "doubtful_labels": _doubtful(given, assessment),
        "calibration": {"temperature": assessment.temperature, "error": assessment.calibration_error},
        "repeated": given.repeated,
        "alike": given.alike,
        "contradicting": given.contradicting,
        "unreadable": given.unreadable,
        "warnings": _warnings(given),
        "is_flat": is_flat(assessment.sizes, [float(values.mean()) for values in best.curve], len(classes)),
    }


def is_flat(sizes: Sequence[int], accuracies: Sequence[float], classes: int) -> bool:
    """Whether further labels hardly help: the last doubling of many labels gained less than a point.

    Args:
        sizes: Labels at each point of the curve.
        accuracies: Accuracies there.
        classes: Number of classes.
    """
    earlier = (
        [accuracy for size, accuracy in zip(sizes, accuracies, strict=True) if 2 * size <= sizes[-1]] if sizes else []
    )
    return bool(earlier) and sizes[-1] >= FLAT_LABELS * classes and accuracies[-1] - earlier[-1] < FLAT_GAIN


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
    unlikely = own < 0.5 / len(classes)
    found = np.flatnonzero((assessment.otherwise >= NEARLY_ALL) & unlikely)
    return [
        {
            "photo": given.photos.names[index],
            "label": classes[labels[index]],
            "predicted": classes[int(assessment.probabilities[index].argmax())],
            "probability_of_label": float(own[index]),
        }
        for index in sorted(found.tolist(), key=lambda index: float(own[index]))
    ]


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


def method_rows(document: Mapping[str, Any]) -> Cells:
    """Return the table of methods, the best first."""
    several = len({each["backbone"] for each in document["methods"]}) > 1
    ranked = sorted(document["methods"], key=lambda each: -each["accuracy"])
    rows = [["method", "left-out accuracy", "told apart"]]
    for each in ranked:
        name = f"{each['method']} ({each['backbone']})" if several else each["method"]
        rows.append([name, f"{each['accuracy']:.1%}", "" if each["tied"] else "worse"])
    return rows


def curve_rows(document: Mapping[str, Any]) -> Cells:
    """Return the table of the learning curve, with the forecast."""
    points = document["curve"]
    classes = len(document["classes"])
    rows = [["labels", "per class", "accuracy"]]
    rows += [[str(each["labels"]), f"{each['labels'] / classes:g}", f"{each['accuracy']:.1%}"] for each in points]
    low, high = document["expected_accuracy"]["interval"]
    now = document["expected_accuracy"]["estimate"]
    rows.append(
        [str(document["photos"]), f"{round(document['photos'] / classes, 1):g}", f"{now:.1%} [{low:.0%}, {high:.0%}]"]
    )
    for each in document["forecast"]:
        low, high = each["interval"]
        per_class = f"{round(each['labels'] / classes, 1):g}"
        accuracy = f"{each['estimate']:.1%} [{low:.0%}, {high:.0%}] forecast, {each['level']:.0%}"
        rows.append([str(each["labels"]), per_class, accuracy])
    return rows


def sentences(document: Mapping[str, Any]) -> list[str]:
    """Return the answer in sentences."""
    expected, low_high = document["expected_accuracy"], document["expected_accuracy"]["interval"]
    chosen = document["method"], document["backbone"]
    tied = [each["method"] for each in document["methods"] if each["tied"]]
    others = [name for name in dict.fromkeys(tied) if name != document["method"]]
    lines = [
        f"best: {chosen[0]} on {chosen[1]}; expected accuracy on further photos like these "
        f"{expected['estimate']:.1%} [{low_high[0]:.1%}, {low_high[1]:.1%}], a 95 % interval",
        f"not told apart from it: {', '.join(others) or 'none'}",
    ]
    if document["confused"]:
        pairs = [f"{each['class']} as {each['taken_for']} {each['share']:.0%}" for each in document["confused"][:3]]
        lines.append(f"most often confused: {', '.join(pairs)}")
    doubtful = document["doubtful_labels"]
    if doubtful:
        quoted = [f"{each['photo']} ({each['label']}, predicted {each['predicted']})" for each in doubtful[:QUOTED]]
        lines.append(f"labels that look wrong: {len(doubtful)}: {', '.join(quoted)}; see photos.csv")
    else:
        lines.append("labels that look wrong: none")
    copies = [" = ".join(names) for names in document["repeated"]] + [" ~ ".join(each) for each in document["alike"]]
    lines.append(f"duplicates, counted once: {len(copies)}" + "".join(f"; {each}" for each in copies[:QUOTED]))
    error = format_number(100 * document["calibration"]["error"], ".1f")
    lines.append(f"probabilities: calibration error {error} points")
    if document["is_flat"]:
        lines.append(
            "advice: the learning curve is flat, further labels hardly help this backbone; try another one, or "
            "fine-tuning with a training library"
        )
    return lines + [f"WARNING: {warning}" for warning in document["warnings"]]


def markdown_page(document: Mapping[str, Any]) -> str:
    """Return the page."""
    classes = list(document["classes"])
    confusion = [["class", *map(escape_markdown, classes)]]
    for name, row in zip(classes, document["confusion"] or [[]] * len(classes), strict=True):
        confusion.append([escape_markdown(name), *(f"{share:.0%}" for share in row)])
    doubtful = [["photo", "label", "predicted", "probability of the label"]]
    doubtful += [
        [
            *(escape_markdown(each[key]) for key in ("photo", "label", "predicted")),
            f"{each['probability_of_label']:.3f}",
        ]
        for each in document["doubtful_labels"]
    ]
    about = (
        f"{document['photos']} photos of {len(classes)} classes, without a validation set: every accuracy is of photos "
        f"that the method had not learnt, {document['splits']} times in {document['folds']} folds."
    )
    tables: list[tuple[str, str, Cells]] = [
        ("Methods", "", method_rows(document)),
        ("Learning curve", "The last row is the expected accuracy with all labels.", curve_rows(document)),
    ]
    if len(classes) <= 30:
        tables.append(("Confusion", "Share of each class, by rows, that is taken for each.", confusion))
    if len(doubtful) > 1:
        tables.append(("Labels that look wrong", "", doubtful))
    title = f"Classifier for {escape_markdown(str(document['dataset']))}"
    return markdown_report(title, about, sentences(document), tables)
