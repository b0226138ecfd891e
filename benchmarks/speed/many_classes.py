"""Peak memory and time of an evaluation of 1,000 orderings with 1,000 classes, 2,048 features and 10,000 samples."""

import resource
from types import SimpleNamespace

import torch

from headstart import modules
from headstart.benchmarks.speed.frame import timed
from headstart.datamodules.feature_stream import LOGITS
from headstart.datamodules.sample_stream import ValidationSet
from headstart.modules.comparison import Comparison
from headstart.modules.method import Start

ORDERINGS, CLASSES, FEATURES, VALIDATION, MAX_SAMPLES = 1_000, 1_000, 2_048, 10_000, 500


def main(method: str = "NearestClassMean", groups: int = 2) -> None:
    """Feed one sample to groups of orderings that fit side by side, evaluate each, and extrapolate to all orderings.

    Args:
        method: The class that is compared with the baseline.
        groups: Groups that are measured; the next reuses the memory of the last.
    """
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(CLASSES, (VALIDATION,), generator=generator)
    samples = torch.randn(VALIDATION, FEATURES, generator=generator)
    comparison = Comparison(modules.GradientDescent(), {"custom": getattr(modules, method)()})
    at_once = comparison.orderings_at_once(
        Start(FEATURES, CLASSES, range(1), MAX_SAMPLES, seed=0, samples=samples), methods=2
    )

    def measure(first: int) -> None:
        numbers = range(first, first + at_once)
        start = Start(FEATURES, CLASSES, numbers, MAX_SAMPLES, seed=0, samples=samples)
        stream = SimpleNamespace(start=lambda: start, held=dict, feed=lambda *_: None, orderings=numbers)
        comparison.trainer = SimpleNamespace(datamodule=stream)  # type: ignore[assignment]
        comparison.setup("fit")
        comparison.configure_optimizers()
        indices = torch.randint(len(samples), (at_once, 1), generator=generator)
        comparison.training_step((samples[indices], labels[indices], indices), 0)
        comparison.on_validation_epoch_start()
        size = LOGITS // (4 * at_once * CLASSES)
        with torch.inference_mode():
            comparison.validation_step(ValidationSet(samples, labels, size), 0)

    seconds = [timed(lambda first=group * at_once: measure(first))[0] for group in range(groups)]  # type: ignore[misc]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    whole = sum(seconds) / (groups * at_once) * ORDERINGS
    print(f"{method}: {at_once} orderings at once, peak {peak:.0f} MB after {groups} groups, all in {whole:.0f} s")
