"""What a score leaves behind: its files, its line in the log, and what is printed."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zipfile import ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from evaluation.alignment.heatmap import draw_heatmap
from evaluation.alignment.score_log import append_score
from output.errors import UserError
from output.files import replacing

# What of a score goes into the log; the matrix stays in the score's own file.
LOGGED = (
    "contract_version",
    "team",
    "score",
    "n_models",
    "n_stimuli",
    "mean_cka_biased",
    "mean_cka_debiased",
    "extraction",
    "digests",
)


def write_score(
    document: Mapping[str, Any], folder: Path, log: Path, embeddings: Mapping[str, NDArray[Any]] | None = None
) -> list[Path]:
    r"""Write the result, the heatmap and, if wanted, the embeddings, and log the score: all of it or nothing.

    Args:
        document: The content of `score.json`, or of `cka.json` where there is no team and nothing is logged.
        folder: Folder of the files, created where it is missing.
        log: Folder of the log.
        embeddings: `[stimuli, width]` by model or layer, for `embeddings.npz`, where `/` and `\` in a name become
            `%2F` and `%5C`.

    Returns:
        The files.

    Raises:
        UserError: A folder cannot be written.
    """
    pairwise, scored = document["pairwise"], "team" in document
    files = [folder / ("score.json" if scored else "cka.json"), folder / "heatmap.png"]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in files:
            if path.is_dir():
                # Found only when the file takes its place, it would be too late: the score would be in the log.
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        with ExitStack() as written:
            result, heatmap = (written.enter_context(replacing(path)) for path in files)
            result.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n")
            draw_heatmap(pairwise["names"], np.array(pairwise["biased"]), _title(document), heatmap)
            if embeddings is not None:
                files.append(folder / "embeddings.npz")
                _write_arrays(written.enter_context(replacing(files[-1])), embeddings)
            if scored:
                time = datetime.now(UTC).isoformat(timespec="seconds")
                record = {**{key: document[key] for key in LOGGED}, "output": str(folder), "time": time}
                files.append(append_score(log, record))
    except OSError as error:
        msg = f"output: {str(folder)!r} cannot be written ({error}); choose another folder"
        raise UserError(msg) from error
    return files


def print_score(document: Mapping[str, Any], files: list[Path]) -> None:
    """Print the score and where its files are.

    Args:
        document: The content of `score.json` or `cka.json`.
        files: The files.
    """
    if "team" in document:
        version = document["contract_version"]
        print(f"{document['team'].title()} Team score {document['score']:.6f} under contract {version}")
    debiased = document["mean_cka_debiased"]
    print(
        f"mean pairwise linear CKA {document['mean_cka_biased']:.6f} (biased), "
        f"{'undefined below 4 stimuli' if debiased is None else f'{debiased:.6f}'} (debiased), "
        f"of {len(document['pairwise']['names'])} {'layers' if 'n_layers' in document else 'models'} "
        f"on {document['n_stimuli']} stimuli"
    )
    print(f"wrote {', '.join(map(str, files))}")


def _write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays as `numpy.savez` does, but the same bytes whenever, and no name that leads out of a folder."""
    with ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            member = ZipInfo(f"{name.replace('/', '%2F').replace(chr(92), '%5C')}.npy")
            with archive.open(member, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)


def _title(document: Mapping[str, Any]) -> str:
    compared = f"linear CKA (biased), {document['n_stimuli']} stimuli"
    if "team" not in document:
        return compared[0].upper() + compared[1:]
    return f"{document['team'].title()} Team, score {document['score']:.4f}: {compared}"
