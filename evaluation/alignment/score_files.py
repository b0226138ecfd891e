"""The files of a score, its record in the log, and its printed summary."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.alignment.heatmap import plot_heatmap
from headstart.evaluation.alignment.score_log import append_score
from headstart.evaluation.alignment.scoring import mean_key
from headstart.metrics.similarity.catalogue import DEFAULT_MEASURE, SIMILARITY_MEASURES
from headstart.output.figures import save
from headstart.output.files import write_together
from headstart.output.printable import say
from headstart.output.results_folder import ResultsFolder
from headstart.output.tables import format_number, print_table

# The most models whose matrix is printed.
MOST_PRINTED = 10
# Keys that are in the score's own file alone, and not in the log.
NOT_LOGGED = {"pairwise", "null_mean", "null_sd", "z", "p", "calibrated", "calibration", "timings"}


def write_score(
    document: Mapping[str, Any], results: ResultsFolder, log: Path, embeddings: Mapping[str, NDArray[Any]]
) -> list[Path]:
    r"""Write the result, the heatmap and, if wanted, the embeddings, each complete or as it was; then log the score.

    A command that is killed in between has written its score, and the same command again logs it.

    Args:
        document: The content of `score.json`, or of `cka.json` where there is no team and nothing is logged.
        results: Where they are written: the document under the first name, embeddings as `.npz`, else the heatmap.
        log: Folder of the log.
        embeddings: `[stimuli, width]` by model or layer; `%`, `/` and `\` in a name become `%25`, `%2F` and `%5C`.

    Returns:
        The files, and the log where the score was logged.

    Raises:
        UserError: A folder cannot be written.
    """
    writers: dict[str, Callable[[Path], object]] = {}
    for name in results.names[1:]:
        form = name.rpartition(".")[2]
        is_figure = form != "npz"
        writers[name] = partial(_plot_heatmap, document, form) if is_figure else partial(_write_arrays, embeddings)
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    writers[results.names[0]] = partial(Path.write_text, data=text)
    with results.writable():
        write_together(results.path, writers)

    paths = [results.path / name for name in results.names]
    return [*paths, append_score(log, _log_record(document, results.path))] if "team" in document else paths


def _plot_heatmap(document: Mapping[str, Any], form: str, path: Path) -> None:
    pairwise, label = document["pairwise"], SIMILARITY_MEASURES[_measure(document)].title
    save(plot_heatmap(pairwise["names"], np.array(pairwise["biased"]), _title(document), label), path, form)


def _log_record(document: Mapping[str, Any], folder: Path) -> dict[str, Any]:
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
    name, pairwise = _measure(document), document["pairwise"]
    measure = SIMILARITY_MEASURES[name]
    names = pairwise["names"]
    if len(names) <= MOST_PRINTED:
        table = [["", *(str(number) for number in range(1, len(names) + 1))]]
        for number, (compared, values) in enumerate(zip(names, pairwise["biased"], strict=True), 1):
            table.append([f"{number} {compared}", *(format_number(value, ".3f") for value in values)])
        print_table(measure.estimated, table)
        say("")

    biased, debiased = (document[mean_key(name, estimate)] for estimate in ("biased", "debiased"))
    estimates = f" (biased), {'undefined' if debiased is None else f'{debiased:.6f}'} (debiased)"
    calibrated = document.get("mean_cka_calibrated")
    # The interval of a score stands beside the score.
    ends = "" if "team" in document or "ci95" not in document else _interval(document["ci95"]["mean"])
    say(
        f"mean pairwise {measure.title} {biased:.6f}{estimates if measure.has_debiased else ''}, "
        f"{'' if calibrated is None else f'{calibrated:.6f} (calibrated), '}"
        f"of {len(names)} {'layers' if 'n_layers' in document else 'models'} "
        f"on {document['n_stimuli']} stimuli{ends}"
    )


def _describe_score(document: Mapping[str, Any]) -> str:
    challenge = f", challenge {document['challenge']}" if "challenge" in document else ""
    weights = ", with random weights" if document["extraction"].get("random_weights") else ""
    precision = document["extraction"]["precision"]
    deviation = "" if precision == "float32" else f", but in {precision} instead of its float32"
    return (
        f"{document['team'].title()} Team score {document['score']:.6f} under contract {document['contract_version']}"
        f"{challenge}{weights}{deviation}{_interval(document['ci95']['score'])}{_describe_epsilon(document)}"
    )


def _describe_epsilon(document: Mapping[str, Any]) -> str:
    if "epsilon" not in document:
        return ""
    return f"; {document['score_with_epsilon']:.6f} with {document['epsilon']:g} added to the denominator of CKA"


def _interval(ends: Sequence[float] | None) -> str:
    return "" if ends is None else f", 95 % interval over stimuli {ends[0]:.4f} to {ends[1]:.4f}"


def _measure(document: Mapping[str, Any]) -> str:
    return str(document.get("measure", DEFAULT_MEASURE))


def _write_arrays(arrays: Mapping[str, NDArray[Any]], path: Path) -> None:
    """Write arrays as `numpy.savez` does, but reproducibly, and without names that lead out of a folder."""
    with ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            member = ZipInfo(f"{_escape(name)}.npy")
            with archive.open(member, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)


def _escape(name: str) -> str:
    """Return a name without slashes of either kind, a different one for every name."""
    return name.replace("%", "%25").replace("/", "%2F").replace("\\", "%5C")


def _title(document: Mapping[str, Any]) -> str:
    compared = f"{SIMILARITY_MEASURES[_measure(document)].estimated}, {document['n_stimuli']} stimuli"
    compared = compared[0].upper() + compared[1:]
    if "team" not in document:
        return compared
    return f"{document['team'].title()} Team, score {document['score']:.4f}\n{compared}"
