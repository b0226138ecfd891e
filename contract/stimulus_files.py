"""The files of stimuli below the roots of their datasets, which environment variables name."""

import os
import re
from collections import Counter
from collections.abc import Sequence
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
        stimuli: Stimuli of a catalog, in which no two data sets share a variable.

    Returns:
        One path per stimulus, without symbolic links, so that the checked file is the one that is opened.

    Raises:
        ContractError: A root is not set or no folder. Or a file is missing, is not regular, or lies outside of the root
            after following symbolic links. It names every such data set, with the number of its stimuli, and every such
            stimulus of the others.
    """
    roots: dict[str, Path] = {}
    problems: list[Problem] = []
    for name, count in sorted(Counter(stimulus.dataset_name for stimulus in stimuli).items()):
        try:
            roots[name] = _find_root(name)
        except _UnresolvedError as error:
            affected = "1 stimulus" if count == 1 else f"{count} stimuli"
            problems.append(Problem("", short_json(name), f"{error} ({affected} of data set {name})"))

    paths: list[Path] = []
    for stimulus in stimuli:
        if stimulus.dataset_name not in roots:
            continue
        try:
            paths.append(_find_file(stimulus, roots[stimulus.dataset_name]))
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


def _find_root(dataset: str) -> Path:
    variable = root_variable(dataset)
    if folder := os.environ.get(variable):
        root, source = expand_home(folder), variable
    elif common := os.environ.get(ROOT_VARIABLE):
        root, source = expand_home(common) / dataset, ROOT_VARIABLE
    else:
        raise _UnresolvedError(
            f"set {variable} to the dataset's folder, or {ROOT_VARIABLE} to the folder of all datasets"
        )
    if not root.is_dir():
        raise _UnresolvedError(f"there is no folder {printable(str(root))}, to which {source} points")
    return root.resolve()


def _find_file(stimulus: Stimulus, root: Path) -> Path:
    place = root / stimulus.image_identifier
    try:
        path = place.resolve(strict=True)
    except FileNotFoundError as error:
        raise _UnresolvedError(f"there is no file {printable(str(place))}") from error
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of symbolic links
        raise _UnresolvedError(f"cannot be found: {printable(reason_of(error))}") from error
    if not path.is_relative_to(root):
        raise _UnresolvedError(f"a symbolic link leads out of the dataset's root {printable(str(root))}")
    if not path.is_file():
        raise _UnresolvedError(f"{printable(str(path))} is not a regular file")
    return path
