"""Peak memory against the number of evaluations and the size of the photos."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from headstart.benchmarks.command import EMBEDDED, train


def main() -> None:
    """Print the peak memory of runs that differ in one thing each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        embedded = [*EMBEDDED, "--model.methods={mean: headstart.modules.NearestClassMean}"]
        train(folder, *embedded)
        for evaluations in (50, 250, 1000):
            every = 1000 // evaluations
            options = ["--data.max_samples=1000", f"--criterion.evaluate_every={every}"]
            run = train(folder, *embedded, *options)
            print(f"{evaluations} evaluations: {run.peak_mb:.0f} MB")
        for side in (128, 1024):
            photos = _photos(folder / f"photos-{side}", side)
            options = [
                "--data.photos=headstart.datamodules.ClassFolders",
                f"--data.photos.root={photos}",
                "--data.max_samples=100",
            ]
            run = train(folder, *EMBEDDED[:2], *options, "--results.overwrite=true")
            print(f"400 photos of {side} x {side} pixels: {run.peak_mb:.0f} MB")


def _photos(root: Path, side: int) -> Path:
    generator = np.random.default_rng(0)
    for split in ("train", "validation"):
        for name in ("cats", "dogs"):
            (root / split / name).mkdir(parents=True)
            for i in range(100):
                noise = generator.integers(0, 256, (side, side, 3), dtype=np.uint8)
                Image.fromarray(noise).save(root / split / name / f"{i}.jpg")
    return root


if __name__ == "__main__":
    main()
