"""Accuracy traces, and the criterion of sample efficiency: accuracy reached and kept for consecutive evaluations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from headstart.metrics.arrays import Flags, Floats

Measure = Literal["accuracy", "balanced_accuracy"]
# The criterion's defaults.
THRESHOLD, CONSECUTIVE = 0.8, 10
# The count after the end of a trace.
NOT_EVALUATED = -1
# The count of an evaluation that lazy evaluation skipped, see
# `headstart.metrics.sample_efficiency.lazy_evaluation`.
SKIPPED = -2
# Counts are stored in 32 bits.
LARGEST_COUNT = 2**31 - 1


def class_weights(class_sizes: NDArray[np.int64], measure: Measure) -> NDArray[np.int64]:
    """Return the weight of a correct prediction of each class, with which the weighted share is the measure.

    For accuracy all weights are 1. Balanced accuracy is the mean of the classes' shares of correct predictions. A class
    with n samples has the weight S / n, where S is the least common multiple of all n. If the weighted count would
    exceed `LARGEST_COUNT`, S is the largest possible number, and the weights are rounded down. The measure is then
    wrong by at most n / S, where n is the size of the largest class.

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
    """Return the lowest count of correct predictions whose share of all is at least the threshold in [0, 1].

    The threshold is read as the decimal number that it prints as. Exactly 80.0 % therefore passes 0.8, however `0.8 *
    all_correct` is rounded in binary.
    """
    return math.ceil(Fraction(repr(float(threshold))) * all_correct)


def first_streaks(
    correct: NDArray[np.integer[Any]], samples_seen: NDArray[np.int64], required: int, consecutive: Sequence[int]
) -> Floats:
    """Return where traces of accuracy first meet the criterion, for several lengths of the streak.

    Source: "Transfer Learning Benchmark Evaluation Criteria", section "Primary Metric: Sample Efficiency".

    Args:
        correct: Counts of correct predictions at every evaluation, `[..., evaluations]`.
        samples_seen: Samples seen at every evaluation, `[evaluations]`.
        required: Lowest count that passes, see `required_correct`.
        consecutive: Required lengths of the streak, `[lengths]`.

    Returns:
        Samples seen at the last evaluation of the first full streak (samples to criterion) and at its first (onset),
        `[lengths, 2, ...]`. Infinite where the trace never meets the criterion.
    """
    result = np.full((len(consecutive), 2, *correct.shape[:-1]), np.inf)
    begins, shorter = correct >= required, 1
    for index in np.argsort(consecutive):
        length = consecutive[index]
        begins, shorter = _longer_streaks(begins, shorter, length), length
        if begins.shape[-1]:
            first = begins.argmax(axis=-1)
            met = np.take_along_axis(begins, first[..., None], axis=-1)[..., 0]
            result[index, 0] = np.where(met, samples_seen[first + length - 1], np.inf)
            result[index, 1] = np.where(met, samples_seen[first], np.inf)
    return result


def _longer_streaks(begins: Flags, shorter: int, length: int) -> Flags:
    """Return where streaks of a length begin, `[..., evaluations - length + 1]`, from where shorter ones do."""
    while shorter < length:
        # Two streaks that touch or overlap are a longer one.
        step = min(shorter, length - shorter)
        begins = begins[..., :-step] & begins[..., step:]
        shorter += step
    return begins


def is_open(
    correct: NDArray[np.integer[Any]], samples_seen: NDArray[np.int64], required: int, consecutive: Sequence[int]
) -> Flags:
    """Return where skipped evaluations decide whether, or when, traces first meet a criterion.

    Args:
        correct: As for `first_streaks`, `SKIPPED` where there was no evaluation.
        samples_seen: As for `first_streaks`.
        required: As for `first_streaks`.
        consecutive: As for `first_streaks`.

    Returns:
        `[lengths, ...]`.
    """
    skipped = correct == SKIPPED
    if not skipped.any():
        return np.zeros((len(consecutive), *correct.shape[:-1]), dtype=bool)
    all_fail, all_pass = (
        first_streaks(np.where(skipped, count, correct), samples_seen, required, consecutive)
        for count in (SKIPPED, required)
    )
    return np.asarray((all_fail != all_pass).any(axis=1))


def samples_to_criterion(
    correct: NDArray[np.integer[Any]], samples_seen: NDArray[np.int64], required: int, consecutive: int
) -> tuple[Floats, Floats]:
    """Return samples to criterion and onset of traces of accuracy: `first_streaks` of a single length."""
    samples, onset = first_streaks(correct, samples_seen, required, [consecutive])[0]
    return samples, onset


@dataclass(frozen=True)
class Curves:
    """Accuracy traces of methods and orderings, as far as they were measured.

    Attributes:
        methods: Names, the baseline first, `[methods]`.
        orderings: Numbers of the orderings, `[orderings]`.
        samples_seen: Samples seen at each evaluation of an ordering, `[evaluations]`.
        correct: Counts of correct predictions, `[methods, orderings, evaluations]`, -1 after the end of a trace, and
            -2 where lazy evaluation skipped one.
        validation_size: Number of validation samples.
        all_correct: The count where all predictions are correct; for accuracy the validation size.
        measure: The measure that the share of the counts is, see `class_weights`.
        limit: Samples at which restricted means are cut: the sample limit, or those seen when a run was cut off.
        threshold: Accuracy of the criterion that the run used.
        consecutive: Streak length of the criterion that the run used.
    """

    methods: list[str]
    orderings: NDArray[np.int64]
    samples_seen: NDArray[np.int64]
    correct: NDArray[np.signedinteger[Any]]
    validation_size: int
    all_correct: int
    measure: Measure
    limit: int
    threshold: float
    consecutive: int

    @property
    def criterion(self) -> dict[str, Any]:
        """Measure, threshold and streak length, by these names."""
        return {"measure": self.measure, "threshold": self.threshold, "consecutive": self.consecutive}

    @property
    def floor(self) -> int:
        """The fewest samples with which the criterion can be met."""
        return int(self.samples_seen[min(self.consecutive, len(self.samples_seen)) - 1])

    @property
    def present(self) -> Flags:
        """Return whether there is a trace, `[methods, orderings]`."""
        return np.asarray(self.correct[..., 0] != NOT_EVALUATED)

    def select(self, methods: Sequence[str]) -> Curves:
        """Return the traces of some methods, by name."""
        rows = [self.methods.index(name) for name in methods]
        return replace(self, methods=[*methods], correct=self.correct[rows])

    def select_orderings(self, columns: Flags | NDArray[np.integer[Any]]) -> Curves:
        """Return the traces of some orderings, by their indices or by whether they are selected."""
        # An index would lay the copy out differently, and a mean over it would be rounded differently.
        correct = np.take(self.correct, np.arange(len(self.orderings))[columns], axis=1)
        return replace(self, orderings=self.orderings[columns], correct=correct)

    @property
    def accuracy(self) -> Floats:
        """Validation accuracy by the measure, `[methods, orderings, evaluations]`, NaN where it was not evaluated."""
        return _shares(self.correct, self.all_correct)

    @property
    def ends(self) -> NDArray[np.int64]:
        """Samples seen at the last evaluation of each trace, `[methods, orderings]`."""
        return np.asarray(self.samples_seen[(self.correct != NOT_EVALUATED).sum(-1) - 1])

    @property
    def is_lazy(self) -> bool:
        """Return whether evaluations were skipped, so that only the run's own criterion is known."""
        return bool((self.correct == SKIPPED).any())

    def accuracy_at(self, samples: int) -> Floats:
        """Return the accuracy at the last evaluation that had seen no more than a number of samples.

        Args:
            samples: The number.

        Returns:
            `[methods, orderings]`, NaN before the first evaluation, after the end of the trace, and where that
            evaluation was skipped.
        """
        index = int(np.searchsorted(self.samples_seen, samples, side="right")) - 1
        # The last evaluation counts up to where the next one would have been.
        is_beyond = samples > self.limit or samples >= self.samples_seen[-1] + self.samples_seen[0]
        if index < 0 or is_beyond:
            return np.full(self.correct.shape[:2], np.nan)
        return _shares(self.correct[..., index], self.all_correct)

    def content(self) -> bytes:
        """Return the content of a compressed `.npz` file with an array per attribute."""
        arrays = {field.name: getattr(self, field.name) for field in fields(Curves)}
        file = BytesIO()
        np.savez_compressed(file, **{**arrays, "correct": self.correct.astype(np.int32)})
        return file.getvalue()

    @classmethod
    def load(cls, file: Path | BytesIO) -> Curves:
        """Read curves from a file of the content that `content` returned; a KeyError where an array is missing."""
        with np.load(file, allow_pickle=False) as arrays:
            stored = {field.name: arrays[field.name] for field in fields(cls)}
        values: dict[str, Any] = {name: value if value.ndim else value.item() for name, value in stored.items()}
        return cls(**{**values, "methods": values["methods"].tolist(), "correct": values["correct"].astype(np.int64)})

    def samples_to_criterion(self) -> tuple[Floats, Floats]:
        """Return samples to criterion and onset of all traces, each `[methods, orderings]`, infinite where censored."""
        required = required_correct(self.threshold, self.all_correct)
        return samples_to_criterion(self.correct, self.samples_seen, required, self.consecutive)


def _shares(correct: NDArray[np.signedinteger[Any]], all_correct: int) -> Floats:
    return np.where(correct < 0, np.nan, correct / all_correct)


def learning_curve_area(accuracy: Floats, samples_seen: NDArray[np.integer[Any]]) -> Floats:
    """Return the area under learning curves over the logarithm of the samples, divided by that of accuracy 1.

    It is the mean accuracy where each doubling of the samples counts the same; lines connect the evaluations.

    Source: Isabelle Guyon, Gavin Cawley, Gideon Dror and Vincent Lemaire, "Results of the Active Learning Challenge",
    JMLR Workshop and Conference Proceedings 16, 2011, section 2.3. Their normalisation by random predictions is left
    out.

    Args:
        accuracy: Accuracy at each evaluation, `[..., evaluations]`.
        samples_seen: Samples seen at each evaluation, ascending, two or more, `[evaluations]`.

    Returns:
        From 0 to 1, `[...]`.
    """
    logarithms = np.log(samples_seen)
    return np.asarray(np.trapezoid(accuracy, logarithms) / (logarithms[-1] - logarithms[0]))
