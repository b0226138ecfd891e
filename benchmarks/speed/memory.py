"""Peak memory against the number of evaluations and the size of the photos."""

from pathlib import Path

import numpy as np
from PIL import Image

from headstart.benchmarks.speed.frame import EMBEDDED, temporary_folder, train


def main() -> None:
    """Print the peak memory of runs that differ in one thing each."""
    with temporary_folder() as folder:
        embedded = [*EMBEDDED, "--model.methods={mean: headstart.modules.NearestClassMean}"]
        train(folder, *embedded)
        for evaluations in (50, 250, 1000):
            options = ["--data.max_samples=1000", f"--criterion.evaluate_every={1000 // evaluations}"]
            print(f"{evaluations} evaluations: {train(folder, *embedded, *options).peak_mb:.0f} MB")

        for side in (128, 1024):
            root = folder / f"photos-{side}"
            _write_photos(root, side)
            options = ["--data.photos=headstart.datamodules.ClassFolders", f"--data.photos.root={root}"]
            options += ["--data.max_samples=100", "--results.overwrite=true"]
            print(f"400 photos of {side} x {side} pixels: {train(folder, *EMBEDDED[:2], *options).peak_mb:.0f} MB")


def _write_photos(root: Path, side: int) -> None:
    generator = np.random.default_rng(0)
    for path in [root / split / name for split in ("train", "validation") for name in ("cats", "dogs")]:
        path.mkdir(parents=True)
        for i in range(100):
            noise = generator.integers(0, 256, (side, side, 3), dtype=np.uint8)
            Image.fromarray(noise).save(path / f"{i}.jpg")
