"""Warnings of the results of runs, which go with their numbers wherever these are shown.

`benchmarks/coverage/comparisons.py` measures how rarely some intervals hold; docs/results/coverage.md has its numbers.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Flags, Floats

NOT_FINITE = "gave predictions that are not finite in"
# Pairs of photos that are named.
MOST_NAMED = 3
# Entries of a protocol that name photos: their effect on the numbers, and the sign between the photos of a pair.
PHOTOS = {
    "near_duplicate_photos": ("validation photos look like a training photo: accuracies may be too high", " ~ "),
    "duplicate_photos": ("photos are in both splits or in two classes", " = "),
    "unreadable_photos": ("photos cannot be read and are left out", ""),
}
CALLBACKS = ("callbacks of the user's own took part, and may have changed what was measured", "")
# A share at the floor is large from here on, unless this many orderings are above it.
LARGE_SHARE, MANY_ABOVE = 1 / 3, 25
# Fewer orderings than these, censored or not censored, say too little of their share.
FEW = 5


def photo_warnings(protocol: Mapping[str, Any]) -> list[str]:
    """Return warnings of the photos that a run was fed, and of callbacks that may have changed them.

    Args:
        protocol: The protocol of `results.json`, or of a ledger's stream.
    """
    warnings = []
    for key, (fault, sign) in {**PHOTOS, "callbacks": CALLBACKS}.items():
        if photos := protocol.get(key):
            named = [item if isinstance(item, str) else sign.join(map(str, item)) for item in [*photos][:MOST_NAMED]]
            listed = ", ".join([*named, *["…"] * (len(photos) > MOST_NAMED)])
            warnings.append(f"{len(photos)} {fault}: {listed}.")
    return warnings


def method_warnings(name: str, scores: Mapping[str, Any]) -> list[str]:
    """Return warnings of what a method did.

    Args:
        name: Its name.
        scores: Its entry in `results.json`.
    """
    # An entry of a ledger's run has the warning itself.
    diverged = sum(at is not None for at in scores.get("diverged_at", ()))
    warnings = [f"{name} {NOT_FINITE} {diverged} orderings."] * bool(diverged)
    return [*warnings, *(f"{name} {fault}" for fault in scores.get("warnings", ()))]


def last_evaluation_faults(correct: NDArray[np.integer[Any]]) -> list[str]:
    """Return that a method predicts nothing right in the end, if so.

    Args:
        correct: Its counts of correct predictions, negative where it was not evaluated, `[orderings, evaluations]`.
    """
    last = correct.shape[-1] - 1 - (correct >= 0)[:, ::-1].argmax(-1)
    orderings = int((np.take_along_axis(correct, last[:, None], -1) == 0).sum())
    return [f"has no correct prediction at the last evaluation of {orderings} orderings."] * bool(orderings)


def one_class_warnings(only: Mapping[int, str], orderings: int, of_pixels: bool) -> list[str]:
    """Return that a network predicts one class alone, if so.

    Args:
        only: The class that it predicts alone, by the orderings in which it does.
        orderings: Number of all orderings.
        of_pixels: Whether it predicts a class for every pixel.
    """
    what = "all pixels of the validation photos" if of_pixels else "all validation photos"
    return [
        f"predicts {name!r} for {what}{f' in {count} of {orderings} orderings' if orderings > 1 else ''}."
        for name, count in Counter(only.values()).items()
    ]


def all_warnings(document: Mapping[str, Any]) -> list[str]:
    """Return the warnings of photos and methods of the content of `results.json`, as it was written first or later."""
    methods = document.get("methods", {})
    return [
        *photo_warnings(document.get("protocol", {})),
        *(warning for name, scores in methods.items() for warning in method_warnings(name, scores)),
    ]


def largest_class_warning(criterion: Mapping[str, Any]) -> list[str]:
    """Return the warning that predicting the largest class alone meets the criterion, if it does.

    Args:
        criterion: The criterion of `results.json`.
    """
    largest, required = criterion.get("largest_class"), criterion.get("required_correct")
    if largest is None or required is None or largest < required:
        return []
    reached = f"{largest / criterion['all_correct']:.0%} {criterion['measure'].replace('_', ' ')}"
    balanced = "--criterion.measure=balanced_accuracy, or " * (criterion["measure"] == "accuracy")
    return [
        f"predicting the largest class alone meets the threshold ({reached}), so samples to criterion mean "
        f"nothing; use {balanced}a higher --criterion.threshold."
    ]


def interval_warnings(names: Sequence[str], samples: Floats, floor: int) -> list[str]:
    """Return warnings of t intervals of restricted means, and of Fieller's intervals of improvements.

    Args:
        names: Names of the methods.
        samples: Samples to criterion, infinite where censored, `[methods, orderings]`.
        floor: The fewest samples with which the criterion can be met.
    """
    count = samples.shape[1]
    at_floor, censored = (samples <= floor).sum(1), np.isinf(samples).sum(1)
    is_floored = (at_floor >= LARGE_SHARE * count) & (count - at_floor < MANY_ABOVE)
    is_censored = (censored > 0) & (np.minimum(censored, count - censored) < FEW)

    warnings = []
    if is_floored.any():
        warnings.append(
            f"t intervals of restricted means may be too narrow where many orderings are at the floor of {floor} "
            f"samples, the fewest possible: {_list(names, at_floor, is_floored, count)}."
        )
    if is_censored.any():
        warnings.append(
            f"intervals of restricted means, and of improvements by or over the same methods, may be too narrow or "
            f"unbounded, because fewer than {FEW} orderings met the criterion, or fewer than {FEW} did not. It was not "
            f"met by {_list(names, censored, is_censored, count)}."
        )
    return [f"{warning} See docs/protocol.md." for warning in warnings]


def _list(names: Sequence[str], counts: NDArray[np.int64], chosen: Flags, orderings: int) -> str:
    return ", ".join(f"{names[index]} ({counts[index]} of {orderings})" for index in np.flatnonzero(chosen).tolist())
