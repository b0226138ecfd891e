"""What a score leaves behind: its files and what is printed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from cli.errors import UserError
from evaluation.alignment.heatmap import draw_heatmap


def write_score(
    document: Mapping[str, Any], folder: Path, embeddings: Mapping[str, NDArray[Any]] | None = None
) -> list[Path]:
    """Write the result, the heatmap and, if wanted, the embeddings; each file is complete or not there.

    Args:
        document: The content of `score.json`, or of `cka.json` where there is no team.
        folder: Folder of the files, created where it is missing.
        embeddings: `[stimuli, width]` by model or layer, for `embeddings.npz`.

    Returns:
        The files.

    Raises:
        UserError: The folder cannot be written.
    """
    result = folder / ("score.json" if "team" in document else "cka.json")
    files = [folder / "heatmap.png"]
    pairwise = document["pairwise"]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        draw_heatmap(pairwise["names"], np.array(pairwise["biased"]), _title(document), files[0])
        if embeddings is not None:
            files.append(folder / "embeddings.npz")
            _write_arrays(files[-1], embeddings)
        partial = result.with_name(f"{result.name}.partial")
        partial.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n")
        partial.replace(result)
    except OSError as error:
        msg = f"output: {str(folder)!r} cannot be written ({error}); choose another folder"
        raise UserError(msg) from error
    return [result, *files]


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
        f"of {document['n_models']} representations of {document['n_stimuli']} stimuli"
    )
    print(f"wrote {', '.join(map(str, files))}")


def _write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays as `numpy.savez` does, which takes no array of the name `file`."""
    partial = path.with_name(f"{path.name}.partial")
    with ZipFile(partial, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)
    partial.replace(path)


def _title(document: Mapping[str, Any]) -> str:
    compared = f"linear CKA (biased), {document['n_stimuli']} stimuli"
    if "team" not in document:
        return compared[0].upper() + compared[1:]
    return f"{document['team'].title()} Team, score {document['score']:.4f}: {compared}"
