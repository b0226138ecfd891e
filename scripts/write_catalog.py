"""Write a stimuli catalog of the pictures in a folder: `python -m scripts.write_catalog FOLDER --output FILE`."""

from __future__ import annotations

import json
import random
from pathlib import Path

import jsonargparse
from jsonargparse.typing import PositiveInt

SUFFIXES = {".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm"}


def write_catalog(
    folder: str,
    output: str = "stimuli.jsonl",
    dataset_name: str | None = None,
    count: PositiveInt | None = None,
    seed: int = 0,
) -> None:
    """Write a stimuli catalog of the pictures in a folder, one JSON line each, in the order of their paths.

    Args:
        folder: Root of the data set.
        output: JSON lines file to write.
        dataset_name: What the catalog calls the data set; by default the folder's name, which
            HACKATHON_DATASET_ROOT finds when it names the folder above.
        count: Take a random sample of so many pictures; all by default.
        seed: Seed of the sample.
    """
    root = Path(folder)
    found = sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.suffix.lower() in SUFFIXES)
    if not found or (count or 0) > len(found):
        msg = f"error: folder: {folder!r} holds {len(found)} pictures, {count or 'some'} are wanted"
        raise SystemExit(msg)
    if count is not None:
        found = sorted(random.Random(seed).sample(found, int(count)))
    name = dataset_name or root.resolve().name
    lines = [json.dumps({"dataset_name": name, "image_identifier": path}) for path in found]
    partial = Path(f"{output}.partial")
    partial.write_text("\n".join(lines) + "\n")
    partial.replace(output)
    print(f"wrote {output}: {len(lines)} stimuli")


if __name__ == "__main__":
    jsonargparse.auto_cli(write_catalog)
