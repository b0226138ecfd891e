"""Find the files of stimuli below the roots of their datasets, which environment variables name."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from contract.problems import ContractError, Problem, printable, short_json
from contract.schema import Stimulus

ROOT_VARIABLE = "HACKATHON_DATASET_ROOT"


def locate_stimuli(stimuli: Sequence[Stimulus]) -> list[Path]:
    """Find the file of every stimulus.

    The root of a dataset is `HACKATHON_DATASET_ROOT_<NAME>`, where NAME is the dataset's in capitals with `_` for what
    is no letter or digit, else the folder of the dataset's name in `HACKATHON_DATASET_ROOT`.

    Args:
        stimuli: Any stimuli.

    Returns:
        One path per stimulus, without symbolic links: what was checked is what will be opened.

    Raises:
        ContractError: A root is not set or no folder; or a file is missing, is not regular, or lies outside of the root
            once symbolic links are followed. Every such stimulus is named.
    """
    names = sorted({stimulus.dataset_name for stimulus in stimuli})
    find_root = cache(lambda name: _find_root(name, names))
    # Folders are resolved once each, because there may be very many stimuli.
    find_folder = cache(lambda name, parent: _require_below(find_root(name), (find_root(name) / parent).resolve()))
    paths: list[Path] = []
    problems: list[Problem] = []
    for stimulus in stimuli:
        try:
            paths.append(_find_file(stimulus, find_root(stimulus.dataset_name), find_folder))
        except _UnresolvedError as error:
            name = short_json(f"{stimulus.dataset_name}/{stimulus.image_identifier}")
            problems.append(Problem("", name, str(error)))
    if problems:
        raise ContractError("stimuli", problems)
    return paths


class _UnresolvedError(Exception):
    """Why a root or file cannot be found."""


def _variable(dataset: str) -> str:
    return f"{ROOT_VARIABLE}_{re.sub('[^A-Z0-9]', '_', dataset.upper())}"


def _find_root(dataset: str, datasets: Sequence[str]) -> Path:
    variable = _variable(dataset)
    own, common = os.environ.get(variable), os.environ.get(ROOT_VARIABLE)
    if own:
        sharing = [short_json(name) for name in datasets if _variable(name) == variable]
        if len(sharing) > 1:
            raise _UnresolvedError(
                f"datasets {' and '.join(sharing)} share the variable {variable}; unset it and use {ROOT_VARIABLE}"
            )
        root, source = Path(own).expanduser(), variable
    elif common:
        root, source = Path(common).expanduser() / dataset, ROOT_VARIABLE
    else:
        raise _UnresolvedError(
            f"set {variable} to the dataset's folder, or {ROOT_VARIABLE} to the folder of all datasets"
        )
    if not root.is_dir():
        raise _UnresolvedError(f"there is no folder {printable(str(root))}, which {source} leads to")
    return root.resolve()


def _find_file(stimulus: Stimulus, root: Path, find_folder: Callable[[str, str], Path]) -> Path:
    parent, _, name = stimulus.image_identifier.rpartition("/")
    try:
        path = find_folder(stimulus.dataset_name, parent) / name
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            path = _require_below(root, path.resolve(strict=True))
            status = path.stat()
    except FileNotFoundError as error:
        raise _UnresolvedError(f"there is no file {printable(str(root / stimulus.image_identifier))}") from error
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of symbolic links
        reason = getattr(error, "strerror", None) or str(error)
        raise _UnresolvedError(f"cannot be found: {printable(reason)}") from error
    if not stat.S_ISREG(status.st_mode):
        raise _UnresolvedError(f"{printable(str(path))} is not a regular file")
    return path


def _require_below(root: Path, path: Path) -> Path:
    if not path.is_relative_to(root):
        raise _UnresolvedError(f"a symbolic link leads out of the dataset's root {printable(str(root))}")
    return path
