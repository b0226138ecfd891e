"""The scores as a printed table."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

WIDTH = 120


def print_table(document: dict[str, Any]) -> None:
    """Print the scores of a results document.

    Args:
        document: The content of `results.json`.
    """
    criterion, protocol = document["criterion"], document["protocol"]
    table = Table(
        title=(
            f"Samples to criterion: {criterion['threshold']:.0%} validation accuracy at {criterion['consecutive']} "
            f"consecutive evaluations\n{protocol['dataset']}, {protocol['backbone']} ({protocol['weights']}), "
            f"{protocol['orderings']} orderings, batch size {protocol['batch_size']}"
        ),
        caption=(
            f"restricted mean: mean of min(samples, {document['restricted_at']}); improvement: of the restricted mean "
            "over the baseline's, paired 95 % t interval; p: sign-flip permutation test, Holm-adjusted"
        ),
    )
    for column in ("method", "reached", "median", "restricted mean", "improvement [95 %]", "p", "final accuracy"):
        table.add_column(column, justify="left" if column == "method" else "right", no_wrap=True)
    for name, scores in document["methods"].items():
        table.add_row(name, *_cells(scores, document["comparisons"].get(name)))
    console = Console()
    console.width = max(console.width, WIDTH)
    console.print(table)


def _cells(scores: dict[str, Any], comparison: dict[str, Any] | None) -> list[str]:
    orderings = len(scores["samples_to_criterion"])
    median = "not reached" if scores["median"] is None else f"{scores['median']:g}"
    accuracy = sum(scores["final_accuracy"]) / orderings
    improvement = p_value = ""
    if comparison is not None:
        low, high = comparison["ci95"]
        interval = "" if low is None else f" [{low:.0f}, {high:.0f}]"
        improvement = f"{comparison['relative_improvement_percent']:.0f} %{interval}"
        p_value = f"{comparison['p_value_holm']:.2g}"
    mean = f"{scores['restricted_mean']:.1f}"
    return [f"{scores['reached']}/{orderings}", median, mean, improvement, p_value, f"{accuracy:.1%}"]
