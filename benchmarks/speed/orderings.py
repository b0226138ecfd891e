"""1,000 and 100 orderings against one: 250 evaluations of the baseline and a closed-form method, features in place."""

from functools import partial

from headstart.benchmarks.speed.frame import EMBEDDED, compare, temporary_folder, train

METHODS = ("NearestClassMean", "RecursiveLeastSquares")


def main(orderings: list[int] = [1, 100, 1000], repeats: int = 3) -> None:  # noqa: B006 - read only
    """Time numbers of orderings in turn, each started from the command line.

    Args:
        orderings: The numbers; the others are compared with the first.
        repeats: How often each is run.
    """
    with temporary_folder() as folder:
        train(folder, *EMBEDDED, "--data.orderings=1")
        for method in METHODS:
            options = [*EMBEDDED, f"--model.methods={{closed_form: headstart.modules.{method}}}"]
            runs = {f"{method} {n}": partial(train, folder, *options, f"--data.orderings={n}") for n in orderings}
            compare(runs, next(iter(runs)), repeats)
