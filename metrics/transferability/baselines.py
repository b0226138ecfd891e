"""Baselines that transferability metrics have to beat: the number of target classes, and facts of the source."""

from dataclasses import dataclass

from headstart.metrics.arrays import Array, as_array
from headstart.metrics.transferability.feature_statistics import sort_by_class


def num_classes(labels: Array) -> float:
    """Count the target classes.

    Source: Andrea Agostinelli et al., "How stable are Transferability Metrics evaluations?", ECCV 2022, section 7.
    There it is the baseline that shows how far transferability follows from the number of classes alone. The more
    classes, the harder the target: it ranks targets with its sign reversed, as in table 4a.

    Args:
        labels: Integers from 0, `[samples]`; numbers that do not occur are no classes.

    Returns:
        The number of classes that occur.

    Raises:
        ValueError: The labels are not integers from 0, or there is none.
    """
    array = as_array("labels", labels)
    if array.ndim != 1 or not len(array):
        raise ValueError(f"labels must be [samples], at least one, not {list(array.shape)}")
    return float(len(sort_by_class(array, len(array))[2]))


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
