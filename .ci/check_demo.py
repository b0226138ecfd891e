"""Check that the demo's results are complete and show what the embedded default promises."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(folder: Path) -> None:
    """Check one run's files.

    Args:
        folder: Where the demo wrote them.
    """
    for name in ("config.yaml", "curves.npz", "learning_curves.png", "criterion_reached.png"):
        assert (folder / name).stat().st_size > 0, f"{name} is empty"
    results = json.loads((folder / "results.json").read_text())
    assert results["complete"], results["stopped_because"]
    baseline = results["methods"]["baseline"]
    assert baseline["reached"] >= 15, f"the baseline met the criterion in {baseline['reached']} of 20 orderings"
    assert 30 <= baseline["median"] <= 600, f"the baseline's median is {baseline['median']}"
    lows = [comparison["ci95"][0] for comparison in results["comparisons"].values()]
    assert max(lows) > 0, f"no custom method is better with certainty: {lows}"
    print(f"demo: complete, the baseline's median is {baseline['median']:g} samples")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
