"""The files of stimuli below the roots of their datasets, which environment variables name."""

import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from headstart.contract.problems import ContractError, Problem, short_json
from headstart.contract.schema import Stimulus
from headstart.output.arguments import expand_home
from headstart.output.errors import reason_of
from headstart.output.printable import printable

ROOT_VARIABLE = "HACKATHON_DATASET_ROOT"


def locate_stimuli(stimuli: Sequence[Stimulus]) -> list[Path]:
    """Return the file of every stimulus.

    The root of a dataset is `HACKATHON_DATASET_ROOT_<NAME>`, else the folder of the dataset's name in
    `HACKATHON_DATASET_ROOT`. NAME is the dataset's name in capitals, with `_` for all characters but letters and
    digits.

    Args:
        stimuli: Any stimuli.

    Returns:
        One path per stimulus, without symbolic links, so that the checked file is the one that is opened.

    Raises:
        ContractError: A root is not set or no folder. Or a file is missing, is not regular, or lies outside of the root
            after following symbolic links. It names every such data set, with the number of its stimuli, and every such
            stimulus of the others.
    """
    counts = Counter(stimulus.dataset_name for stimulus in stimuli)
    roots: dict[str, Path] = {}
    problems: list[Problem] = []
    for name, count in sorted(counts.items()):
        try:
            roots[name] = _find_root(name, sorted(counts))
        except _UnresolvedError as error:
            affected = "1 stimulus" if count == 1 else f"{count} stimuli"
            problems.append(Problem("", short_json(name), f"{error} ({affected} of data set {name})"))

    # Each folder is resolved once, because there may be very many stimuli.
    find_folder = cache(lambda name, parent: _require_below(roots[name], (roots[name] / parent).resolve()))
    paths: list[Path] = []
    for stimulus in stimuli:
        if stimulus.dataset_name not in roots:
            continue
        try:
            paths.append(_find_file(stimulus, roots[stimulus.dataset_name], find_folder))
        except _UnresolvedError as error:
            name = short_json(f"{stimulus.dataset_name}/{stimulus.image_identifier}")
            problems.append(Problem("", name, str(error)))
    if problems:
        raise ContractError("stimuli", problems)
    return paths


class _UnresolvedError(Exception):
    """The reason why a root or file cannot be found."""


@cache
def root_variable(dataset: str) -> str:
    """Return the environment variable of a data set's root."""
    return f"{ROOT_VARIABLE}_{re.sub('[^A-Z0-9]', '_', dataset.upper())}"


def _find_root(dataset: str, datasets: Sequence[str]) -> Path:
    variable = root_variable(dataset)
    folder, common = os.environ.get(variable), os.environ.get(ROOT_VARIABLE)
    if folder:
        sharing = [short_json(name) for name in datasets if root_variable(name) == variable]
        if len(sharing) > 1:
            raise _UnresolvedError(
                f"datasets {' and '.join(sharing)} share the variable {variable}; unset it and use {ROOT_VARIABLE}"
            )
        root, source = expand_home(folder), variable
    elif common:
        root, source = expand_home(common) / dataset, ROOT_VARIABLE
    else:
        raise _UnresolvedError(
            f"set {variable} to the dataset's folder, or {ROOT_VARIABLE} to the folder of all datasets"
        )
    if not root.is_dir():
        raise _UnresolvedError(f"there is no folder {printable(str(root))}, to which {source} points")
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
        raise _UnresolvedError(f"cannot be found: {printable(reason_of(error))}") from error
    if not stat.S_ISREG(status.st_mode):
        raise _UnresolvedError(f"{printable(str(path))} is not a regular file")
    return path


def _require_below(root: Path, path: Path) -> Path:
    if not path.is_relative_to(root):
        raise _UnresolvedError(f"a symbolic link leads out of the dataset's root {printable(str(root))}")
    return path
