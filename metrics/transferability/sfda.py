"""SFDA."""

from headstart.metrics.arrays import Array, namespace
from headstart.metrics.transferability import fisher_discriminant as discriminants
from headstart.metrics.transferability.feature_statistics import FeatureStatistics, statistics_of


def sfda(features: Array | FeatureStatistics, labels: Array | None = None) -> float:
    """Compute SFDA, the probability of the labels by Fisher discriminants on features made harder to separate.

    Source: Wenqi Shao et al., "Not All Models Are Equal: Predicting Model Transferability in a Self-challenging Fisher
    Space", ECCV 2022, section 3. Regularised discriminants predict for every sample x the probability p of its own
    class. The sample is then mixed with the mean m of the other classes, `p x + (1 - p) m`: the less certain, the more.
    Discriminants with the same shrinkage are fitted to the mixed samples. The score is the mean probability that these
    predict for the labels.

    Where text and released program differ, it follows the program, which computed the published scores. Covariances are
    means over samples and shrunk towards their mean variance. A second softmax over the probabilities softens p. The
    mean of the other classes' means is m. The score is of probabilities, not of their logarithms. The program
    approximates the largest eigenvalue by three steps; here it is exact. The score depends on the scale of the features
    through the shrinkage.

    Args:
        features: `[samples, features]`, or their statistics.
        labels: `[samples]`.

    Returns:
        The score, from 0 to 1; 1 for a single class, the sum of squares of the classes' shares for constant features.
    """
    statistics = statistics_of(features, labels)
    if statistics.classes == 1:
        return 1.0
    rows, axes = discriminants.rows_and_axes(statistics)
    probabilities, shrinkage = discriminants.class_probabilities(rows, statistics, statistics.dimensions, axes=axes)

    of_own_class = discriminants.of_own_class(discriminants.softmax(probabilities), statistics)[:, None]
    means = statistics.class_sums(rows) / statistics.counts
    others = (means.sum(0) - means) / (statistics.classes - 1)
    mixed = namespace(rows).empty_like(rows)
    for other, members in zip(others, statistics.class_rows, strict=True):
        mixed[members] = of_own_class[members] * rows[members] + (1 - of_own_class[members]) * other

    probabilities, _ = discriminants.class_probabilities(mixed, statistics, statistics.dimensions, shrinkage, axes)
    return float(discriminants.of_own_class(probabilities, statistics).mean())
