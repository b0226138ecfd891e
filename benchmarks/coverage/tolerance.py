"""How far counts of correct predictions differ with the number of threads, the processor's kernels and companions."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from headstart.benchmarks.speed.frame import run, temporary_folder
from headstart.metrics.sample_efficiency.curves import THRESHOLD, Curves
from headstart.store.cache import cache_folder

ORDERINGS, MANY = 20, 100
# Variables of the three libraries that multiply: instructions that every processor of the architecture has, and those
# without AVX-512, which take a network half of the time of the former.
OLDEST = {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41"}
OLDER = {"ATEN_CPU_CAPABILITY": "avx2", "MKL_CBWR": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"}
# Orderings, variables, and whether the features are computed so, too.
VARIANTS: dict[str, tuple[int, dict[str, str], bool]] = {
    "the same again": (ORDERINGS, {}, False),
    "one thread": (ORDERINGS, {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}, False),
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
    # Older kernels have no bfloat16. No accuracy is above 1, so that every trace goes to the limit.
    fixed = ["--data.precision=float32", "--criterion.threshold=1.0", "--trainer.logger=false"]
    options = [*(f"--config={each}" for each in configs), *fixed, f"--data.max_samples={samples}"]

    def measure(folder: Path, orderings: int, variables: dict[str, str], cache: Path) -> Curves:
        output = [f"--trainer.default_root_dir={folder / 'run'}", f"--results.ledger={folder / 'ledger'}"]
        run("train.py", *options, f"--data.orderings={orderings}", *output, cache=cache, **variables)
        return replace(Curves.load(folder / "run" / "curves.npz"), threshold=THRESHOLD)

    with temporary_folder() as folder:
        first = measure(folder / "first", ORDERINGS, {}, cache_folder())
        for variant, (orderings, variables, features) in VARIANTS.items():
            cache = folder / "cache" if features else cache_folder()
            print_differences(variant, first, measure(folder / variant, orderings, variables, cache))


def print_differences(variant: str, first: Curves, other: Curves) -> None:
    """Print a line for each method.

    Args:
        variant: How the other was measured.
        first: The reference.
        other: Traces of the same methods and, first, the same orderings.
    """
    print(f"{variant}: counts that differ, by how much at most, orderings with other samples to criterion")
    orderings = first.correct.shape[1]
    differences = np.abs(other.correct[:, :orderings] - first.correct)
    changed = first.samples_to_criterion()[0] != other.samples_to_criterion()[0][:, :orderings]
    for method, counts, samples in zip(first.methods, differences, changed, strict=True):
        differing = f"{np.count_nonzero(counts)} of {counts.size}"
        print(f"  {method:24} {differing:>12}  {counts.max():3}  {samples.sum()} of {len(samples)}", flush=True)
