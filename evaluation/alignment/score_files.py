"""The figure of a score, its record in the log, and its printed summary."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from headstart.evaluation.alignment.heatmap import plot_heatmap
from headstart.evaluation.alignment.scoring import mean_key
from headstart.metrics.similarity.catalogue import DEFAULT_MEASURE, SIMILARITY_MEASURES
from headstart.output.printable import say
from headstart.output.tables import format_number, print_table

# The matrix is printed for at most this many models.
MOST_PRINTED = 10
# Keys of the score's own file that the log leaves out.
NOT_LOGGED = {"scores", "pairwise", "null_mean", "null_sd", "z", "p", "calibrated", "calibration", "timings"}


def plot_score(document: Mapping[str, Any]) -> Figure:
    """Plot the similarities of `score.json` or `cka.json` as a heatmap."""
    pairwise, measure = document["pairwise"], SIMILARITY_MEASURES[_measure(document)]
    title = f"{measure.biased_title}, {document['n_stimuli']} stimuli"
    title = title[0].upper() + title[1:]
    if "team" in document:
        title = f"{document['team'].title()} Team, score {document['score']:.4f}\n{title}"
    return plot_heatmap(pairwise["names"], np.array(pairwise["biased"]), title, measure.title)


def log_record(document: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the record of a score for the log.

    Args:
        document: The content of `score.json`.
        folder: The folder that holds the files of the score.
    """
    return {
        **{key: value for key, value in document.items() if key not in NOT_LOGGED},
        "ci95": document["ci95"]["score"],
        "output": str(folder),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def print_score(document: Mapping[str, Any]) -> None:
    """Print the content of `score.json` or `cka.json`."""
    if "team" in document:
        say(_describe_score(document))
    measure_name, pairwise = _measure(document), document["pairwise"]
    measure = SIMILARITY_MEASURES[measure_name]
    names = pairwise["names"]
    if len(names) <= MOST_PRINTED:
        table = [["", *(str(number) for number in range(1, len(names) + 1))]]
        for number, (name, values) in enumerate(zip(names, pairwise["biased"], strict=True), 1):
            table.append([f"{number} {name}", *(format_number(value, ".3f") for value in values)])
        print_table(measure.biased_title, table)
        say("")

    biased, debiased = (document[mean_key(measure_name, estimate)] for estimate in ("biased", "debiased"))
    mean = f"{biased:.6f}"
    if measure.has_debiased:
        mean += f" (biased), {'undefined' if debiased is None else f'{debiased:.6f}'} (debiased)"
    if (calibrated := document.get("mean_cka_calibrated")) is not None:
        mean += f", {calibrated:.6f} (calibrated)"
    # A team's interval was printed with its score.
    interval = "" if "team" in document or "ci95" not in document else _interval(document["ci95"]["mean"])
    compared = f"{len(names)} {'layers' if 'n_layers' in document else 'models'}"
    say(f"mean pairwise {measure.title} {mean}, of {compared} on {document['n_stimuli']} stimuli{interval}")


def _describe_score(document: Mapping[str, Any]) -> str:
    challenge = f", challenge {document['challenge']}" if "challenge" in document else ""
    weights = ", with random weights" if document["extraction"].get("random_weights") else ""
    precision = document["extraction"]["precision"]
    deviation = "" if precision == "float32" else f", but in {precision} instead of the contract's float32"
    return (
        f"{document['team'].title()} Team score {document['score']:.6f} under contract {document['contract_version']}"
        f"{challenge}{weights}{deviation}{_interval(document['ci95']['score'])}"
    )


def _interval(ends: Sequence[float] | None) -> str:
    return "" if ends is None else f", 95 % interval over stimuli {ends[0]:.4f} to {ends[1]:.4f}"


def _measure(document: Mapping[str, Any]) -> str:
    return str(document.get("measure", DEFAULT_MEASURE))
