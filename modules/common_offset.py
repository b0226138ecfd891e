"""The common offset of features, where it is so large that float32 hides how they differ."""

from torch import Tensor

# Length of the mean relative to the spread from which it is an offset. Of usual networks it is below 10, and methods
# lose their last correct digits in float32 at 1,000.
LARGE = 100.0
# Samples that are looked at, evenly spaced, at most.
SEEN = 1024


def seen_rows(count: int) -> slice:
    """Return which of so many samples are looked at for the offset."""
    return slice(None, None, -(-count // SEEN))


def common_offset(features: Tensor) -> Tensor | None:
    """Return the mean of features if it is more than 100 times as large as their spread.

    Squared norms and products then cancel in float32: nearest class mean predicts by chance from about 10,000 on.
    Less the mean, the same features have all their digits. No label is used, and no usual feature changes.

    Args:
        features: Features of some training samples, `[samples, features]`.

    Returns:
        `[features]` in float32; None where features are used as they are.
    """
    mean = features.double().mean(0)
    spread = (features - mean).square().sum(1).mean().sqrt()
    return mean.float() if 0 < LARGE * spread < mean.norm() else None
