"""`headstart predict`: the classes of photos by a classifier that `headstart fit` has written."""

from pathlib import Path
from typing import Any, Literal

import numpy as np

from headstart.datamodules.photos.folder_listing import report_left_out
from headstart.datamodules.photos.given_pictures import read_pictures
from headstart.datamodules.photos.photo_source import Photos
from headstart.evaluation.classifiers.fit import Features
from headstart.evaluation.classifiers.folder import load_classifier
from headstart.evaluation.embeddings import prefix_extraction
from headstart.output.files import output_file, write_text
from headstart.output.markup import csv_text
from headstart.output.printable import print_written, say
from headstart.store.cache import cache_folder

COLUMNS = ("photo", "class", "probability")
QUOTED = 5


def predict(
    classifier: str,
    photos: str,
    output: str = "predictions.csv",
    probabilities: Literal["best", "all"] = "best",
    weights: str | None = None,
    features: Features = Features(),  # noqa: B008 - frozen
    overwrite: bool = False,
) -> dict[str, Any]:
    """Predict the classes of photos, with calibrated probabilities, into a CSV file: photo, class, probability.

    Args:
        classifier: Folder that `headstart fit` has written.
        photos: Folder of photos, with its folders. Or a file, a CSV file or a data set, as for `headstart.embed`.
        output: The CSV file. A photo that cannot be decoded has an empty class.
        probabilities: Whether the file has the probability of the predicted class alone, or also a column for each
            class.
        weights: File of the backbone's weights, where it has moved since.
        features: How features are computed.
        overwrite: Replace a file of other content.

    Returns:
        Number of photos of each predicted class, those that cannot be decoded with their reasons, and the number of
            files that are left out by reason.
    """
    path = output_file("output", output)
    fitted = load_classifier(classifier, weights)
    pictures = read_pictures(photos, cache_folder(features.cache_dir))
    left_out = report_left_out(pictures.left_out, "photos") if isinstance(pictures, Photos) else {}
    # By default, the arithmetic is that of the features to which the head was fitted.
    options = {name: value for name, value in vars(features).items() if (name, value) != ("precision", "auto")}
    with prefix_extraction("features"):
        values, unreadable = fitted.predict_readable(pictures, **options)

    # Photos that cannot be decoded have no class.
    best = values.argmax(1)
    root = f"{Path(photos).expanduser().absolute().as_posix()}/"
    names = [name.removeprefix(root) for name in pictures.names]
    of_classes = [f"probability of {name}" for name in fitted.classes] if probabilities == "all" else []
    rows = []
    for index, (name, chosen_class) in enumerate(zip(names, best.tolist(), strict=True)):
        shares = [f"{share:.4f}" for share in values[index]]
        row = [fitted.classes[chosen_class], shares[chosen_class], *(shares if of_classes else [])]
        rows.append([name, *([""] * len(row) if index in unreadable else row)])
    write_text(path, csv_text([*COLUMNS, *of_classes], rows), overwrite)

    readable = np.delete(best, list(unreadable))
    counts = np.bincount(readable, minlength=len(fitted.classes)).tolist()
    document = {
        "classes": dict(zip(fitted.classes, counts, strict=True)),
        "unreadable": {names[index]: reason for index, reason in unreadable.items()},
        "files_left_out": left_out,
    }

    say(", ".join(f"{name}: {count}" for name, count in document["classes"].items()))
    if unreadable:
        quoted = ", ".join(f"{name} ({reason})" for name, reason in [*document["unreadable"].items()][:QUOTED])
        say(f"WARNING: {len(unreadable)} photos cannot be decoded: {quoted}")
    print_written([path])
    return document
