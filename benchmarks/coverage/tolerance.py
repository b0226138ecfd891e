"""How far counts of correct predictions differ with the number of threads, the processor's kernels and companions."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import jsonargparse
import numpy as np

from headstart.benchmarks.speed.frame import run, temporary_folder
from headstart.metrics.sample_efficiency.curves import THRESHOLD, Curves
from headstart.store.cache import cache_folder

ORDERINGS, MANY = 20, 100
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
# Of the three libraries that multiply: instructions that every processor of the architecture has, and those without
# AVX-512, which take a network half of the time of the former.
OLDEST = {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41"}
OLDER = {"ATEN_CPU_CAPABILITY": "avx2", "MKL_CBWR": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"}
# Orderings, variables, and whether the features are computed so, too.
VARIANTS: dict[str, tuple[int, dict[str, str], bool]] = {
    "the same again": (ORDERINGS, {}, False),
    "one thread": (ORDERINGS, ONE_THREAD, False),
    f"beside {MANY - ORDERINGS} more orderings": (MANY, {}, False),
    "kernels of any processor": (ORDERINGS, OLDEST, False),
    "kernels without AVX-512, features by them": (ORDERINGS, OLDER, True),
}


def main(
    configs: list[str] = ["configs/cats_and_dogs.yaml"],  # noqa: B006 - read only
    samples: int = 100,
) -> None:
    """Measure a comparison in several ways, and print how many counts differ from the first, and by how much.

    Args:
        configs: Configurations of `train.py`.
        samples: The sample limit.
    """
    with temporary_folder() as folder:
        # Older kernels have no bfloat16. No accuracy is above 1, so that every trace goes to the limit.
        fixed = ["--data.precision=float32", "--criterion.threshold=1.0", "--trainer.logger=false"]
        options = [*(f"--config={each}" for each in configs), *fixed]

        def measure(orderings: int, variables: dict[str, str], cache: Path = cache_folder()) -> Curves:  # noqa: B008
            here = Path(tempfile.mkdtemp(dir=folder))
            fed = [f"--data.max_samples={samples}", f"--data.orderings={orderings}"]
            places = [f"--trainer.default_root_dir={here / 'run'}", f"--results.ledger={here / 'ledger'}"]
            run("train.py", *options, *fed, *places, cache=cache, **variables)
            return replace(Curves.load(here / "run" / "curves.npz"), threshold=THRESHOLD)

        first = measure(ORDERINGS, {})
        for variant, (orderings, variables, features) in VARIANTS.items():
            cache = folder / "cache" if features else cache_folder()
            print_differences(variant, first, measure(orderings, variables, cache))


def print_differences(variant: str, first: Curves, other: Curves) -> None:
    """Print a line per method.

    Args:
        variant: How the other was measured.
        first: The traces that it is compared with.
        other: Traces of the same methods and, first, the same orderings.
    """
    print(f"{variant}: counts that differ, by how much at most, orderings with other samples to criterion")
    there = other.correct[:, : first.correct.shape[1]]
    apart = np.abs(there - first.correct)
    met = first.samples_to_criterion()[0] != other.samples_to_criterion()[0][:, : first.correct.shape[1]]
    for method, counts, samples in zip(first.methods, apart, met, strict=True):
        differing = f"{np.count_nonzero(counts)} of {counts.size}"
        print(f"  {method:24} {differing:>12}  {counts.max():3}  {samples.sum()} of {len(samples)}", flush=True)


if __name__ == "__main__":
    jsonargparse.auto_cli(main)
