"""What a score leaves behind: its files, its line in the log, and what is printed."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zipfile import ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.alignment.heatmap import draw_heatmap
from headstart.evaluation.alignment.score_log import Placement, append_score
from headstart.evaluation.alignment.scoring import mean_key
from headstart.metrics.similarity.catalogue import DEFAULT_MEASURE, SIMILARITY_MEASURES
from headstart.output.errors import UserError, reason_of
from headstart.output.files import remove_partial, replacing, restored_on_failure
from headstart.output.printable import print_written, say
from headstart.output.tables import format_number, print_table

# The most models whose matrix is printed.
MOST_PRINTED = 10
# What of a score goes into the log; the matrix stays in the score's own file.
LOGGED = (
    "contract_version",
    "challenge",
    "team",
    "score",
    "n_models",
    "n_stimuli",
    "mean_cka_biased",
    "mean_cka_debiased",
    "mean_cka_calibrated",
    "extraction",
    "digests",
)


def result_files(folder: Path, measure: str, scored: bool, embeddings: bool) -> list[Path]:
    """Name the files of a result; those of another measure than the default begin with its name.

    Args:
        folder: Their folder.
        measure: Name of the measure.
        scored: Whether it is the score of a submission.
        embeddings: Whether the embeddings are wanted, too.

    Returns:
        The document, the heatmap and, if wanted, the embeddings.
    """
    if measure == DEFAULT_MEASURE:
        names = ["score.json" if scored else "cka.json", "heatmap.png", "embeddings.npz"]
    else:
        names = [f"{measure}.json", f"{measure}_heatmap.png", f"{measure}_embeddings.npz"]
    return [folder / name for name in (names if embeddings else names[:2])]


def write_score(
    document: Mapping[str, Any], files: Sequence[Path], log: Path, embeddings: Mapping[str, NDArray[Any]]
) -> list[Path]:
    r"""Write the result, the heatmap and, if wanted, the embeddings, and log the score: all of it or nothing.

    Args:
        document: The content of `score.json`, or of `cka.json` where there is no team and nothing is logged.
        files: Where they go, as `result_files` names them; their folder is created where it is missing.
        log: Folder of the log.
        embeddings: `[stimuli, width]` by model or layer; `%`, `/` and `\` in a name become `%25`, `%2F` and `%5C`.

    Returns:
        The files, and the log where the score was logged.

    Raises:
        UserError: A folder cannot be written.
    """
    pairwise, measure, folder = document["pairwise"], _measure(document), files[0].parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in files:
            if path.is_dir():
                # Found only when the file takes its place, it would be too late: the score would be in the log.
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        for path in result_files(folder, measure, "team" in document, True):
            remove_partial(path)
        with ExitStack() as written:
            result, heatmap, *arrays = (written.enter_context(replacing(path)) for path in files)
            content = (json.dumps(document, indent=1, allow_nan=False) + "\n").encode()
            result.write_bytes(content)
            similarities, label = np.array(pairwise["biased"]), SIMILARITY_MEASURES[measure].title
            draw_heatmap(pairwise["names"], similarities, _title(document), heatmap, label)
            for path in arrays:
                _write_arrays(path, embeddings)
            if "team" in document:
                time = datetime.now(UTC).isoformat(timespec="seconds")
                record = {
                    **{key: document[key] for key in LOGGED if key in document},
                    "ci95": document["ci95"]["score"],
                    "output": str(folder),
                    "time": time,
                }
                placement = Placement(files[0], hashlib.sha256(content).hexdigest(), written.close)
                with restored_on_failure(files):
                    return [*files, append_score(log, record, placement)]
    except OSError as error:
        raise UserError(
            f"output: {str(folder)!r} cannot be written ({reason_of(error)}); choose another folder"
        ) from error
    return list(files)


def print_score(document: Mapping[str, Any], files: list[Path]) -> None:
    """Print the content of `score.json` or `cka.json`, and where the files are."""
    if "team" in document:
        held = f", challenge {document['challenge']}" if "challenge" in document else ""
        held += ", with random weights" if document["extraction"].get("random_weights") else ""
        precision = document["extraction"]["precision"]
        held += "" if precision == "float32" else f", but in {precision} instead of its float32"
        version = document["contract_version"]
        score, ends = f"{document['score']:.6f}", _interval(document["ci95"]["score"])
        say(f"{document['team'].title()} Team score {score} under contract {version}{held}{ends}")
    name, pairwise = _measure(document), document["pairwise"]
    measure = SIMILARITY_MEASURES[name]
    names = pairwise["names"]
    if len(names) <= MOST_PRINTED:
        rows = [["", *(str(number) for number in range(1, len(names) + 1))]]
        for number, (compared, values) in enumerate(zip(names, pairwise["biased"], strict=True), 1):
            rows.append([f"{number} {compared}", *(format_number(value, ".3f") for value in values)])
        print_table(measure.estimated, rows)
        say("")
    biased, debiased = (document[mean_key(name, estimate)] for estimate in ("biased", "debiased"))
    # That of a score stands beside it.
    ends = "" if "team" in document or "ci95" not in document else _interval(document["ci95"]["mean"])
    calibrated = document.get("mean_cka_calibrated")
    estimates = f" (biased), {'undefined' if debiased is None else f'{debiased:.6f}'} (debiased)"
    say(
        f"mean pairwise {measure.title} {biased:.6f}{estimates if measure.has_debiased else ''}, "
        f"{'' if calibrated is None else f'{calibrated:.6f} (calibrated), '}"
        f"of {len(names)} {'layers' if 'n_layers' in document else 'models'} "
        f"on {document['n_stimuli']} stimuli{ends}"
    )
    print_written(files)


def _interval(ends: Sequence[float] | None) -> str:
    return "" if ends is None else f", 95 % interval over stimuli {ends[0]:.4f} to {ends[1]:.4f}"


def _measure(document: Mapping[str, Any]) -> str:
    return str(document.get("measure", DEFAULT_MEASURE))


def _write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays as `numpy.savez` does, but the same bytes whenever, and no name that leads out of a folder."""
    with ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            member = ZipInfo(f"{_escape(name)}.npy")
            with archive.open(member, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)


def _escape(name: str) -> str:
    """Give a name without slashes of either kind, another one for every name."""
    return name.replace("%", "%25").replace("/", "%2F").replace("\\", "%5C")


def _title(document: Mapping[str, Any]) -> str:
    compared = f"{SIMILARITY_MEASURES[_measure(document)].estimated}, {document['n_stimuli']} stimuli"
    if "team" not in document:
        return compared[0].upper() + compared[1:]
    return f"{document['team'].title()} Team, score {document['score']:.4f}: {compared}"
