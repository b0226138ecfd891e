"""Accuracy traces, and the criterion of sample efficiency: accuracy reached and kept for consecutive evaluations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Measure = Literal["accuracy", "balanced_accuracy"]
# The criterion's defaults.
THRESHOLD, CONSECUTIVE = 0.8, 10
# Stands behind the end of a trace.
NOT_EVALUATED = -1
# Stands in a trace where lazy evaluation left out an evaluation, see
# `headstart.metrics.sample_efficiency.lazy_evaluation`.
SKIPPED = -2
# Counts are stored in 32 bits.
LARGEST_COUNT = 2**31 - 1


def class_weights(class_sizes: NDArray[np.int64], measure: Measure) -> NDArray[np.int64]:
    """Give what a correct prediction of each class counts, so that the share of all that can be counted is a measure.

    For accuracy it counts 1. Balanced accuracy is the mean of the classes' shares of correct predictions: one of a
    class with n samples counts S / n, where S is the least common multiple of all n. Where the counts would exceed
    `LARGEST_COUNT`, S is the largest number that they allow, and the counts are rounded down: the measure is then
    wrong by n / S at most, n being the size of the largest class.

    Source: Kay H. Brodersen, Cheng Soon Ong, Klaas E. Stephan and Joachim M. Buhmann, "The Balanced Accuracy and Its
    Posterior Distribution", ICPR, 2010, section 2, for any number of classes.

    Args:
        class_sizes: Validation samples of each class, `[classes]`; classes without any are left out of the mean.
        measure: The measure.

    Returns:
        Whole numbers, `[classes]`.
    """
    if measure == "accuracy":
        return np.ones_like(class_sizes)
    present = class_sizes[class_sizes > 0].tolist()
    share = min(math.lcm(*present), LARGEST_COUNT)
    if share * len(present) > LARGEST_COUNT:
        share = LARGEST_COUNT // len(present)
    return np.where(class_sizes > 0, share // np.maximum(class_sizes, 1), 0)


def required_correct(threshold: float, all_correct: int) -> int:
    """Give the lowest count of correct predictions that is at least the threshold in [0, 1] as a share of all.

    The threshold is taken as the decimal number that it prints as, so that exactly 80.0 % passes 0.8 whatever
    the rounding of `0.8 * all_correct` in binary.
    """
    return math.ceil(Fraction(repr(float(threshold))) * all_correct)


def first_streaks(
    correct: NDArray[np.integer[Any]], samples_seen: NDArray[np.int64], required: int, consecutive: Sequence[int]
) -> NDArray[np.float64]:
    """Find where traces of accuracy first meet the criterion, for several lengths of the streak at once.

    Source: "Transfer Learning Benchmark Evaluation Criteria", section "Primary Metric: Sample Efficiency".

    Args:
        correct: Counts of correct predictions at every evaluation, `[..., evaluations]`.
        samples_seen: Samples seen at every evaluation, `[evaluations]`.
        required: Lowest count that passes, see `required_correct`.
        consecutive: Lengths of the streak that is needed, `[lengths]`.

    Returns:
        Samples seen at the last evaluation of the first full streak (samples to criterion) and at its first (onset),
        `[lengths, 2, ...]`, infinite where the trace never meets the criterion.
    """
    evaluations = correct.shape[-1]
    places = np.arange(evaluations, dtype=np.min_scalar_type(-max(evaluations, 1)))
    # A streak is as long as it is since the last evaluation that did not pass.
    streaks = places - np.maximum.accumulate(np.where(correct >= required, places.dtype.type(-1), places), axis=-1)
    found = np.full((len(consecutive), 2, *correct.shape[:-1]), np.inf)
    for place, length in enumerate(consecutive):
        full = streaks == length
        met = full.any(axis=-1)
        if met.any():
            first = full.argmax(axis=-1)
            found[place, 0] = np.where(met, samples_seen[first], np.inf)
            found[place, 1] = np.where(met, samples_seen[first - length + 1], np.inf)
    return found


def is_open(
    correct: NDArray[np.integer[Any]], samples_seen: NDArray[np.int64], required: int, consecutive: Sequence[int]
) -> NDArray[np.bool_]:
    """Say where evaluations that were left out decide whether, or when, traces first meet a criterion.

    Args:
        correct: As for `first_streaks`, `SKIPPED` where there was no evaluation.
        samples_seen: As for `first_streaks`.
        required: As for `first_streaks`.
        consecutive: As for `first_streaks`.

    Returns:
        `[lengths, ...]`.
    """
    left_out = correct == SKIPPED
    if not left_out.any():
        return np.zeros((len(consecutive), *correct.shape[:-1]), dtype=bool)
    all_fail, all_pass = (
        first_streaks(np.where(left_out, count, correct), samples_seen, required, consecutive)
        for count in (SKIPPED, required)
    )
    return np.asarray((all_fail != all_pass).any(axis=1))


def samples_to_criterion(
    correct: NDArray[np.integer[Any]], samples_seen: NDArray[np.int64], required: int, consecutive: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Find where traces of accuracy first meet the criterion: `first_streaks` of one length, apart."""
    samples, onset = first_streaks(correct, samples_seen, required, [consecutive])[0]
    return samples, onset


@dataclass(frozen=True)
class Curves:
    """The accuracy trace of every method and ordering, as far as it was measured.

    Attributes:
        methods: Names, the baseline first, `[methods]`.
        orderings: Numbers of the orderings, `[orderings]`.
        samples_seen: Samples that an ordering had fed at each evaluation, `[evaluations]`.
        correct: Counts of correct predictions, `[methods, orderings, evaluations]`, -1 behind the end of a trace, and
            -2 where lazy evaluation left one out.
        validation_size: Number of validation samples.
        all_correct: The count where all predictions are correct; for accuracy the validation size.
        measure: What the counts' share of that is, see `class_weights`.
        limit: Where restricted means are cut: the sample limit, or the samples seen where a run was cut off.
        threshold: Accuracy of the criterion that the run used.
        consecutive: Streak length of the criterion that the run used.
    """

    methods: list[str]
    orderings: NDArray[np.int64]
    samples_seen: NDArray[np.int64]
    correct: NDArray[np.int64]
    validation_size: int
    all_correct: int
    measure: Measure
    limit: int
    threshold: float
    consecutive: int

    @property
    def accuracy(self) -> NDArray[np.float64]:
        """Validation accuracy by the measure, `[methods, orderings, evaluations]`, NaN where it was not evaluated."""
        return _shares(self.correct, self.all_correct)

    @property
    def ends(self) -> NDArray[np.int64]:
        """Samples seen at the last evaluation of each trace, `[methods, orderings]`."""
        ends: NDArray[np.int64] = self.samples_seen[(self.correct != NOT_EVALUATED).sum(-1) - 1]
        return ends

    @property
    def is_lazy(self) -> bool:
        """Whether evaluations were left out, so that nothing is known but when the run's own criterion was met."""
        return bool((self.correct == SKIPPED).any())

    @property
    def is_open(self) -> bool:
        """Whether evaluations that were left out decide about a trace, by the criterion of these curves."""
        required = required_correct(self.threshold, self.all_correct)
        return bool(is_open(self.correct, self.samples_seen, required, [self.consecutive]).any())

    def accuracy_at(self, samples: int) -> NDArray[np.float64]:
        """Give the accuracy at a number of samples: at the last evaluation that had seen no more.

        Args:
            samples: The number.

        Returns:
            `[methods, orderings]`, NaN where that is before the first evaluation or behind the end of the trace, and
            where that evaluation was left out.
        """
        place = int(np.searchsorted(self.samples_seen, samples, side="right")) - 1
        # Behind the last evaluation nothing is known, but where the next one would have seen more.
        behind = samples > self.limit or samples >= self.samples_seen[-1] + self.samples_seen[0]
        if place < 0 or behind:
            return np.full(self.correct.shape[:2], np.nan)
        return _shares(self.correct[..., place], self.all_correct)

    def save(self, path: Path) -> None:
        """Write the curves as a compressed `.npz` file with an array per attribute."""
        with path.open("wb") as file:
            np.savez_compressed(file, **{**vars(self), "correct": self.correct.astype(np.int32)})

    @classmethod
    def load(cls, path: Path) -> Curves:
        """Read curves that `save` wrote."""
        with np.load(path, allow_pickle=False) as arrays:
            # Before there was a choice of measures.
            stored = {"measure": np.array("accuracy"), "all_correct": arrays["validation_size"], **arrays}
        found = {field.name: stored[field.name] for field in fields(cls)}
        numbers = {name: value.item() for name, value in found.items() if not value.ndim}
        whole = {"methods": found["methods"].tolist(), "correct": found["correct"].astype(np.int64)}
        return cls(**{**found, **numbers, **whole})

    def samples_to_criterion(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Find samples to criterion and onset of every trace, each `[methods, orderings]`, infinite where censored."""
        required = required_correct(self.threshold, self.all_correct)
        return samples_to_criterion(self.correct, self.samples_seen, required, self.consecutive)


def _shares(correct: NDArray[np.int64], all_correct: int) -> NDArray[np.float64]:
    return np.where(correct < 0, np.nan, correct / all_correct)
