"""1,000 and 100 orderings against one: 250 evaluations of the baseline and a closed-form method, features in place."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from headstart.benchmarks.command import EMBEDDED, train

REPEATS = 3
METHODS = ("NearestClassMean", "RecursiveLeastSquares")


def main() -> None:
    """Time 1, 100 and 1,000 orderings in turn, each started from the command line; print the medians and ratios."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train(folder, *EMBEDDED, "--data.orderings=1")
        for method in METHODS:
            options = [*EMBEDDED, f"--model.methods={{closed_form: headstart.modules.{method}}}"]
            times: dict[int, list[float]] = {1: [], 100: [], 1000: []}
            for _ in range(REPEATS):
                for orderings, seconds in times.items():
                    seconds.append(train(folder, *options, f"--data.orderings={orderings}").seconds)
            one, hundred, thousand = (statistics.median(seconds) for seconds in times.values())
            print(
                f"{method}: 1 ordering {one:.1f} s, 100 orderings {hundred:.1f} s, ratio {hundred / one:.2f}, "
                f"1,000 orderings {thousand:.1f} s, ratio to 100 {thousand / hundred:.2f}"
            )


if __name__ == "__main__":
    main()
