"""Submissions that are Hugging Face data sets, with one record for each model or stimulus."""

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
from headstart.contract.submissions import DEFAULT_MAX_BYTES, KEYS, Submission, check_submission, read_submission
from headstart.output.arguments import expand_home
from headstart.output.printable import printable

HUB = "hf://"
NAME_ON_HUB = re.compile(r"(?:datasets/)?(\w[\w.-]*/\w[\w.-]*)(?:@(\S+))?")
# Columns by team.
COLUMNS: dict[Track, tuple[str, ...]] = {
    "blue": ("model_name", "layer_name", "source"),
    "red": ("dataset_name", "image_identifier"),
}
REQUIRED: dict[Track, tuple[str, ...]] = {"blue": COLUMNS["blue"][:1], "red": COLUMNS["red"]}
_PATTERN = re.compile(r"[*?\[]|::")
# Files that `save_to_disk` writes of several splits and of one.
SAVED = ("dataset_dict.json", "state.json")


def read_any_submission(
    source: str,
    registry: Registry,
    catalog: Catalog,
    team: Track | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
    challenge: Challenge | None = None,
) -> Submission:
    """Read and check a submission that is a file or a data set.

    Args:
        source: A JSON file, or a folder with a data set that the package datasets reads. Or `hf://` and the name of a
            data set on the Hugging Face Hub. `@` and a revision after the name choose another than the newest.
        registry: The known models.
        catalog: The known stimuli.
        team: The required team; None for either.
        max_bytes: The largest size in bytes of the file, or of the data set written as a file.
        challenge: The challenge whose rules hold beside the contract's, except its deadline and quotas.

    Returns:
        The submission. The content and the digest of a data set are those of the same submission as a file.

    Raises:
        ContractError: As of `read_submission`; the source is empty; or the data set cannot be read, or has other
            columns or several splits.
    """
    if not source:
        raise ContractError.of("submission", "nothing is given; name a file or a data set")
    document, location = f"submission {source}", source
    if not source.startswith(HUB):
        path = expand_home(source)
        if not path.is_dir():
            return read_submission(path, registry, catalog, team, max_bytes, challenge)
        # An absolute path, because the package takes a bare name such as csv for one of its own readers.
        location = str(path.absolute())
    content = _read_dataset(location, document, max_bytes)
    return check_submission(content, document, registry, catalog, team, challenge)


def _read_dataset(source: str, document: str, max_bytes: int) -> bytes:
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
        return _write(iter(split), _team_of(columns, document), document, max_bytes)
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


def _write(records: Iterator[Mapping[str, Any]], team: Track, document: str, max_bytes: int) -> bytes:
    """Write records as a file; empty cells are left out, and no more is read than the file may hold."""
    entries: list[str] = []
    size = 0
    for record in records:
        entries.append(json.dumps({name: value for name, value in record.items() if value is not None}, default=str))
        size += len(entries[-1]) + 2
        if size > max_bytes:
            raise ContractError.of(document, f"is larger as a file than the limit of {max_bytes:,} bytes")
        if len(entries) > MAX_ENTRIES:
            break
    return f'{{"{KEYS[team]}": [{", ".join(entries)}]}}'.encode()
