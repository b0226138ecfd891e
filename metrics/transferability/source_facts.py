"""Facts of a source model, whatever the target: baselines that transferability metrics have to beat."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SourceFacts:
    """Facts of a source model.

    Attributes:
        parameters: How many parameters its network has, the classifier included; None where that is not known.
        accuracy: Its accuracy on the task that it was trained for, from 0 to 1; None where that is not known.
    """

    parameters: int | None = None
    accuracy: float | None = None


def parameter_count(facts: SourceFacts) -> float:
    """Return the number of the source's parameters, the baseline by which larger networks transfer better.

    Raises:
        ValueError: It is not known.
    """
    if facts.parameters is None:
        raise ValueError("the number of the source's parameters is not known")
    return float(facts.parameters)


def source_accuracy(facts: SourceFacts) -> float:
    """Return the accuracy of the source on its own task, the baseline by which better networks transfer better.

    Source: Simon Kornblith, Jonathon Shlens, Quoc V. Le, "Do Better ImageNet Models Transfer Better?", CVPR 2019. It
    compares sources of one task: between tasks it says how hard each is.

    Raises:
        ValueError: It is not known.
    """
    if facts.accuracy is None:
        raise ValueError("the accuracy of the source on its own task is not known")
    return facts.accuracy
