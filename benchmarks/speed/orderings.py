"""1,000 and 100 orderings against one: 250 evaluations of the baseline and a closed-form method, features in place."""

from functools import partial

from headstart.benchmarks.speed.frame import EMBEDDED, compare, ratios, temporary_folder, train

METHODS = ("NearestClassMean", "RecursiveLeastSquares")


def main(orderings: list[int] = [1, 100, 1000], repeats: int = 3) -> dict[str, float]:  # noqa: B006 - read only
    """Time numbers of orderings in turn, each started from the command line.

    Args:
        orderings: The numbers; the others are compared with the first.
        repeats: How often each is run.

    Returns:
        The time of each over that of the first number, by method and number.
    """
    found: dict[str, float] = {}
    with temporary_folder() as folder:
        train(folder, *EMBEDDED, "--data.orderings=1")
        for method in METHODS:
            options = [*EMBEDDED, f"--model.methods={{closed_form: headstart.modules.{method}}}"]
            runs = {f"{method} {n}": partial(train, folder, *options, f"--data.orderings={n}") for n in orderings}
            reference = next(iter(runs))
            found |= ratios(compare(runs, reference, repeats), reference)
    return found
