"""The results of `headstart fit`, as tables, sentences and a page."""

from collections.abc import Iterator, Mapping
from typing import Any

from headstart.output.markup import escape_markdown
from headstart.output.tables import Cells, format_number, markdown_report

# Names and pairs that the screen quotes.
QUOTED = 5
QUOTED_PAIRS = 3
# A calibration error above this is explained.
LARGE_ERROR = 0.1


def method_rows(document: Mapping[str, Any]) -> Cells:
    """Return the table of methods, the best first."""
    rows = [["method", "left-out accuracy", "significantly worse"]]
    for each in sorted(document["methods"], key=lambda each: -each["accuracy"]):
        rows.append([_name(document, each), f"{each['accuracy']:.1%}", "" if each["tied"] else "yes"])
    return rows


def _name(document: Mapping[str, Any], trial: Mapping[str, Any]) -> str:
    """Return the name of a method, with its backbone where there are several."""
    several = len({each["backbone"] for each in document["methods"]}) > 1
    return f"{trial['method']} ({trial['backbone']})" if several else str(trial["method"])


def curve_rows(document: Mapping[str, Any]) -> Cells:
    """Return the table of the learning curve."""
    classes = len(document["classes"])
    rows = [["labels", "per class", "accuracy"]]
    for each in document["curve"]:
        rows.append([str(each["labels"]), f"{each['labels'] / classes:g}", f"{each['accuracy']:.1%}"])
    return rows


def expected_rows(document: Mapping[str, Any]) -> Cells:
    """Return the table of the expected accuracy with all labels, and of its forecast with more."""
    classes, expected = len(document["classes"]), document["expected_accuracy"]
    rows = [["labels", "per class", "expected accuracy"]]
    forecasts = [(each, f" forecast, {each['level']:.0%}") for each in document["forecast"]]
    for each, kind in [({**expected, "labels": document["photos"]}, ""), *forecasts]:
        low, high = each["interval"]
        per_class = f"{round(each['labels'] / classes, 1):g}"
        rows.append([str(each["labels"]), per_class, f"{each['estimate']:.1%} [{low:.0%}, {high:.0%}]{kind}"])
    return rows


def sentences(document: Mapping[str, Any]) -> list[str]:
    """Return the answer in sentences."""
    expected = document["expected_accuracy"]
    low, high = expected["interval"]
    trial = {"method": document["method"], "backbone": document["backbone"]}
    tied = [_name(document, each) for each in document["methods"] if each["tied"]]
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
        *_about_backbones(document),
        *_about_photos(document),
        _about_probabilities(document["calibration"]),
        *([] if document["forecast"] else [f"no forecast: {reason}"]),
        *(f"WARNING: {warning}" for warning in document["warnings"]),
    ]


def _about_backbones(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield which backbone is recommended, and of which all methods are significantly worse, if there are several."""
    backbones = dict.fromkeys(each["backbone"] for each in document["methods"])
    if len(backbones) > 1:
        near = {each["backbone"] for each in document["methods"] if each["tied"]}
        worse = [name for name in backbones if name not in near]
        yield (
            f"recommended backbone: {document['backbone']}; significantly worse with every method: "
            f"{', '.join(worse) or 'none'}"
        )


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
            f"{each['class']} as {each['taken_for']} {each['share']:.0%}"
            for each in document["confused"][:QUOTED_PAIRS]
        ]
        yield f"most often confused: {', '.join(pairs)}"

    doubtful = [
        f"{each['photo']} ({each['label']}, predicted {each['predicted']})" for each in document["doubtful_labels"]
    ]
    quoted = f"{len(doubtful)}: {', '.join(doubtful[:QUOTED])}; see photos.csv"
    yield f"labels that look wrong: {quoted if doubtful else 'none'}"

    copies = [" = ".join(names) for names in document["repeated"]] + [" ~ ".join(each) for each in document["alike"]]
    yield f"duplicates, counted once: {len(copies)}" + "".join(f"; {each}" for each in copies[:QUOTED])


def markdown_page(document: Mapping[str, Any]) -> str:
    """Return the page."""
    classes = [escape_markdown(name) for name in document["classes"]]
    about = (
        f"{document['photos']} photos of {len(classes)} classes, without a validation set: every accuracy is measured "
        f"on photos that were left out of training, {document['splits']} times in {document['folds']} folds."
    )
    tables: list[tuple[str, str, Cells]] = [
        ("Methods", "", method_rows(document)),
        ("Learning curve", "Each point predicts the photos that come next.", curve_rows(document)),
        ("Expected accuracy", "Of all labels, and the forecast for more.", expected_rows(document)),
    ]

    if document["confusion"] is not None:
        shares = [[f"{share:.0%}" for share in row] for row in document["confusion"]]
        confusion = [["class", *classes], *([name, *row] for name, row in zip(classes, shares, strict=True))]
        tables.append(("Confusion", "Share of each class, by rows, that is taken for each.", confusion))

    if document["doubtful_labels"]:
        doubtful = [["photo", "label", "predicted", "probability of the label"]]
        for each in document["doubtful_labels"]:
            names = [escape_markdown(each[key]) for key in ("photo", "label", "predicted")]
            doubtful.append([*names, f"{each['probability_of_label']:.3f}"])
        tables.append(("Labels that look wrong", "", doubtful))

    title = f"Classifier for {escape_markdown(str(document['dataset']))}"
    return markdown_report(title, about, sentences(document), tables)
