"""1,000 and 100 orderings against one: 250 evaluations of the baseline and a closed-form method, features in place."""

from __future__ import annotations

from functools import partial

from headstart.benchmarks.speed.frame import EMBEDDED, temporary_folder, time_in_turn, train

METHODS = ("NearestClassMean", "RecursiveLeastSquares")
ORDERINGS = (1, 100, 1000)


def main() -> None:
    """Time 1, 100 and 1,000 orderings in turn, each started from the command line; print the medians and ratios."""
    with temporary_folder() as folder:
        train(folder, *EMBEDDED, "--data.orderings=1")
        for method in METHODS:
            options = [*EMBEDDED, f"--model.methods={{closed_form: headstart.modules.{method}}}"]
            runs = {str(n): partial(train, folder, *options, f"--data.orderings={n}") for n in ORDERINGS}
            one, hundred, thousand = time_in_turn(runs).values()
            print(
                f"{method}: 1 ordering {one:.1f} s, 100 orderings {hundred:.1f} s, ratio {hundred / one:.2f}, "
                f"1,000 orderings {thousand:.1f} s, ratio to 100 {thousand / hundred:.2f}"
            )


if __name__ == "__main__":
    main()
