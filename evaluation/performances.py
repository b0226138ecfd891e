"""`headstart performances`: the performances of source models on targets, from runs of fine-tuning."""

from headstart.contract.tables.csv_tables import PERFORMANCE_COLUMNS, WARNING
from headstart.contract.tables.grouping import grouped
from headstart.evaluation.transfer_results import (
    Trained,
    find_folders,
    pair_results,
    pair_warnings,
    read_accuracies,
    rename,
)
from headstart.output.files import output_file, write_text
from headstart.output.markup import csv_text
from headstart.output.printable import print_lines, say
from headstart.output.tables import format_number, print_table


def performances(
    runs: str | list[str],
    trained: Trained | None = None,
    names: dict[str, str] | None = None,
    output: str = "runs/performances.csv",
    overwrite: bool = False,
) -> dict[tuple[str, str], float]:
    """Tabulate the accuracies of source models on targets, from finished runs of fine-tuning (task target_accuracy).

    Writes and prints a table of source, target, performance and warning. It is for the option `performances` of
    transferability, and a table for audit. Runs of the same source and target with different
    orderings are joined; the performance is the mean over orderings.

    The name of a source is its entry in the registry if the run has one, else that of its weights. This is a file
    without folder and ending, the backbone alone for `DEFAULT`, or both, such as `resnet18_random`. The name of a
    target is that of its data set.

    Args:
        runs: Folder of a run, or a pattern such as 'runs/sources-*' for several; or a list of these.
        trained: `all` for the whole network, `tail` for the modules behind a freeze boundary, or the `head` alone.
            Needed if the runs differ in it.
        names: Other names for sources and targets, by their default names: '{resnet18_random: resnet18}'.
        output: CSV file to write.
        overwrite: Replace a file that holds something else.

    Returns:
        The performances, by source and target.
    """
    path = output_file("output", output)
    results, title = read_accuracies(find_folders(runs), trained)
    results = rename(results, names or {})

    pairs, warnings = pair_results(results), pair_warnings(results)
    table = {pair: float(values.mean()) for pair, values in pairs.items()}
    rows = [[*pair, value, " ".join(warnings[pair])] for pair, value in table.items()]
    write_text(path, csv_text((*PERFORMANCE_COLUMNS, WARNING), rows), overwrite)

    cells = [[*pair, format_number(table[pair]), str(len(values))] for pair, values in pairs.items()]
    print_table(
        f"Performance: {title}, mean over orderings", [["source", "target", "performance", "orderings"], *cells]
    )
    affected = grouped((warning, " on ".join(pair)) for pair, its in warnings.items() for warning in its)
    print_lines(f"WARNING: {', '.join(its)}: {warning}" for warning, its in affected.items())
    say(f"wrote {path}")
    return table
