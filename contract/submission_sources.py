"""Submissions as files, and as Hugging Face data sets with one record for each model or stimulus."""

import json
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from headstart.contract.challenge import Challenge
from headstart.contract.documents import Catalog, Registry
from headstart.contract.problems import ContractError, shorten
from headstart.contract.schema import MAX_ENTRIES, Track
from headstart.contract.submissions import KEYS, Submission, check_submission
from headstart.contract.untrusted_json import read_limited
from headstart.output.arguments import expand_home
from headstart.output.printable import printable

MAX_BYTES = 16_000_000
HUB = "hf://"
NAME_ON_HUB = re.compile(r"(?:datasets/)?(\w[\w.-]*/\w[\w.-]*)(?:@(\S+))?")
# Columns by team, and those that there must be.
COLUMNS: dict[Track, tuple[str, ...]] = {
    "blue": ("model_name", "layer_name", "source"),
    "red": ("dataset_name", "image_identifier"),
}
REQUIRED: dict[Track, tuple[str, ...]] = {"blue": COLUMNS["blue"][:1], "red": COLUMNS["red"]}
_PATTERN = re.compile(r"[*?\[]|::")
# Files that `save_to_disk` writes of several splits and of one.
SAVED = ("dataset_dict.json", "state.json")


def read_submission(
    source: str,
    registry: Registry,
    catalog: Catalog,
    team: Track | None = None,
    challenge: Challenge | None = None,
) -> Submission:
    """Read and check a submission that is a file or a data set, of at most 16 MB.

    Args:
        source: A JSON file, or a folder with a data set that the package datasets reads. Or `hf://` and the name of a
            data set on the Hugging Face Hub. `@` and a revision after the name choose another than the newest.
        registry: The known models.
        catalog: The known stimuli.
        team: The required team; None for either.
        challenge: The challenge whose rules hold beside the contract's, except its deadline and quotas.

    Returns:
        The submission. The content and the digest of a data set are those of the same submission as a file.

    Raises:
        ContractError: As of `check_submission`; or the source cannot be read, or has other columns or several splits.
    """
    if not source:
        raise ContractError.of("submission", "nothing is given; name a file or a data set")
    document, path = f"submission {source}", expand_home(source)
    if source.startswith(HUB):
        content = _read_dataset(source, document)
    elif path.is_dir():
        # An absolute path, because the package takes a bare name such as csv for one of its own readers.
        content = _read_dataset(str(path.absolute()), document)
    else:
        content = read_limited(path, MAX_BYTES, document)
    return check_submission(content, document, registry, catalog, team, challenge)


def _read_dataset(source: str, document: str) -> bytes:
    """Return the one split of a data set as the file of a submission."""
    try:
        datasets = import_module("datasets")
    except ImportError as error:
        rule = f"is a data set, which needs a package ({error}); pip install 'headstart[datasets]'"
        raise ContractError.of(document, rule) from error

    try:
        loaded = _load(datasets, source)
        splits = dict(loaded) if isinstance(loaded, Mapping) else {"": loaded}
        if len(splits) != 1:
            names = ", ".join(map(printable, splits))
            raise ContractError.of(document, f"has the splits {names}; a submission has one")

        (split,) = splits.values()
        columns = [str(name) for name in split.column_names or next(iter(split), {})]
        return _write(iter(split), _team_of(columns, document), document)
    except ContractError:
        raise
    except Exception as error:  # the package raises errors of many unrelated kinds
        reason = printable(shorten(" ".join(str(error).split()) or type(error).__name__))
        rule = f"cannot be read as a data set ({reason}); check its name and the connection, or name a folder"
        raise ContractError.of(document, rule) from error


def _load(datasets: Any, source: str) -> Any:  # noqa: ANN401 - of a package without types
    if source.startswith(HUB):
        match = NAME_ON_HUB.fullmatch(source.removeprefix(HUB))
        if match is None:
            raise ValueError("hf:// needs an owner and a name, hf://owner/name")
        # Streaming fetches no more records than a submission may have.
        return datasets.load_dataset(match[1], revision=match[2], streaming=True)
    if _PATTERN.search(source):
        raise ValueError("its path has *, ?, [ or ::, which datasets takes as patterns; rename it")
    if any((Path(source) / name).is_file() for name in SAVED):
        return datasets.load_from_disk(source)
    return datasets.load_dataset(source, streaming=True)


def _team_of(columns: list[str], document: str) -> Track:
    """Return the team of a data set by its columns."""
    for team, required in REQUIRED.items():
        if set(required) <= set(columns) <= set(COLUMNS[team]):
            return team
    forms = " or ".join(f"{', '.join(names)} ({team.title()} Team)" for team, names in COLUMNS.items())
    actual = printable(shorten(", ".join(columns) or "none"))
    raise ContractError.of(document, f"must have the columns {forms}; it has {actual}")


def _write(records: Iterator[Mapping[str, Any]], team: Track, document: str) -> bytes:
    """Write records as a file; empty cells are left out, and no more is read than the file may hold."""
    entries: list[str] = []
    size = 0
    for record in records:
        entries.append(json.dumps({name: value for name, value in record.items() if value is not None}, default=str))
        size += len(entries[-1]) + 2
        if size > MAX_BYTES:
            raise ContractError.of(document, f"is larger as a file than the limit of {MAX_BYTES:,} bytes")
        if len(entries) > MAX_ENTRIES:
            break
    return f'{{"{KEYS[team]}": [{", ".join(entries)}]}}'.encode()
