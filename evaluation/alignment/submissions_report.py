"""`headstart submissions-report`: submissions of one team by every measure of similarity."""

import glob
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from jsonargparse.typing import PositiveInt

from headstart.contract.schema import CONTRACT_VERSION
from headstart.contract.submissions import DEFAULT_MAX_BYTES, KEYS, read_submission
from headstart.evaluation.alignment.scoring import CatalogOptions, conditions, read_rules
from headstart.evaluation.alignment.submission_ranking import (
    markdown_ranking,
    print_ranking,
    rank_submissions,
    readings,
    score_submissions,
)
from headstart.metrics.similarity.catalogue import SIMILARITY_MEASURES, MeasureName
from headstart.output.dashboard import Tables
from headstart.output.errors import UserError
from headstart.output.home import expand_home
from headstart.output.markup import escape_cell
from headstart.output.printable import printable
from headstart.output.results_folder import ResultsFolder

FILES = ("submissions.json", "submissions.csv", "agreement.csv", "submissions.md")
SCORE_COLUMNS = ("submission", "measure", "score", "rank", "reason")
AGREEMENT_COLUMNS = ("measure", "kendall_tau", "swapped_pairs", "compared_pairs")


class SubmissionsResults(CatalogOptions, ResultsFolder):
    """Options of `headstart submissions-report` that it shares with other commands, and the folder of its results."""


def submissions_report(
    submissions: str | list[str],
    team: Literal["blue", "red"] | None = None,
    challenge: str | None = None,
    measures: list[MeasureName] | None = None,
    output: str = "runs/submissions-report",
    max_submission_bytes: PositiveInt = DEFAULT_MAX_BYTES,
    **options: Any,
) -> dict[str, Any]:
    """Rank one team's submissions by every measure of similarity, and say where the contract's ranking would change.

    Nothing is appended to the log of scores: the contract's score is that of `headstart cka`.

    Args:
        submissions: JSON files, patterns such as 'blue/*.json', or folders, of which every submission counts.
        team: Team of all submissions. By default that of the first.
        challenge: Challenge whose rules the submissions have to keep beside the contract's: a YAML file, or the name of
            one in configs/challenge.
        measures: Measures of similarity beside linear CKA, which is the contract's; by default all.
        output: Folder for submissions.json, submissions.csv, agreement.csv and submissions.md.
        max_submission_bytes: Larger submissions raise an error.
        **options: Options of `SubmissionsResults`.

    Returns:
        The content of submissions.json.
    """
    results = SubmissionsResults(default=output, names=FILES, output=output, **options)
    registry, catalog = results.setup.registry, results.setup.catalog
    rules = read_rules(challenge)
    paths = _find([submissions] if isinstance(submissions, str) else submissions, int(max_submission_bytes))

    checked = {}
    for name, path in _name_submissions(paths).items():
        checked[name] = read_submission(path, registry, catalog, team, int(max_submission_bytes), rules)
        team = checked[name].team
    if team == "red":
        models = list(registry.entries)
        if len(models) < 2:
            raise UserError(f"registry: {str(registry.path)!r} has one model; CKA compares two or more")
    else:
        models = sorted({model for each in checked.values() for model in each.models})

    chosen = list(SIMILARITY_MEASURES) if measures is None else measures
    shared = conditions(models, results.setup, rules)
    digests = {name: each.sha256 for name, each in checked.items()}
    made_from = {
        "contract_version": CONTRACT_VERSION,
        "team": team,
        "digests/submissions": digests,
        "measures": list(readings(chosen)),
    }
    results.check_configuration({**shared, **made_from})

    scores = score_submissions(checked, chosen, results.setup)
    document: dict[str, Any] = {
        "contract_version": CONTRACT_VERSION,
        "team": team,
        **({} if rules is None else {"challenge": rules.name}),
        "n_submissions": len(checked),
        **rank_submissions(scores),
        "extraction": shared["extraction"],
        "digests": {
            **{name: shared[f"digests/{name}"] for name in ("registry", "catalog", "networks")},
            "submissions": digests,
            **({} if rules is None else {"challenge": rules.digest}),
        },
    }
    results.write(document, _tables(document), {"submissions.md": markdown_ranking(document)})
    print_ranking(document)
    results.print_written()
    return document


def _find(sources: Sequence[str], max_bytes: int) -> list[Path]:
    """Find the files of submissions, given as files, patterns and folders, each once.

    Raises:
        UserError: One of these means no file, or there are fewer than 2 in all.
    """
    files: dict[Path, Path] = {}
    for each in sources:
        path = expand_home(each)
        if path.is_dir():
            paths = [file for file in sorted(path.rglob("*.json")) if _may_be_submission(file, max_bytes)]
        elif path.exists() or not glob.has_magic(each):
            paths = [path]
        else:
            anchor = Path(path.anchor or ".")
            paths = sorted(anchor.glob(str(path.relative_to(path.anchor))))
        if not paths:
            raise UserError(
                f"submissions: {each!r} has no submission; give files, patterns or folders with submissions"
            )
        files |= {file.resolve(): file for file in paths}
    if len(files) < 2:
        raise UserError(f"submissions: {len(files)} given, but a ranking needs 2 or more")
    return list(files.values())


def _may_be_submission(path: Path, max_bytes: int) -> bool:
    """Whether a file of a folder is read as a submission; unreadable files are, so that an error names them."""
    if not path.is_file():
        return False
    try:
        document = json.loads(path.read_bytes()) if path.stat().st_size <= max_bytes else None
    except (OSError, ValueError, RecursionError):
        return True
    return isinstance(document, dict) and not set(KEYS.values()).isdisjoint(document)


def _name_submissions(paths: Sequence[Path]) -> dict[str, Path]:
    """Return the files by name, with their folders where two files have the same name."""
    names = [path.stem for path in paths]
    if len(set(names)) < len(names):
        common = os.path.commonpath([path.absolute().parent for path in paths])
        names = [path.absolute().relative_to(common).with_suffix("").as_posix() for path in paths]
    return {printable(name): path for name, path in zip(names, paths, strict=True)}


def _tables(document: dict[str, Any]) -> Tables:
    """Return the columns and rows of the CSV files."""
    scores = [
        (escape_cell(name), reading, score["score"], score["rank"], escape_cell(score["reason"]))
        for name, by_reading in document["scores"].items()
        for reading, score in by_reading.items()
    ]
    agreement = [
        (reading, *(each[column] for column in AGREEMENT_COLUMNS[1:])) for reading, each in document["measures"].items()
    ]
    return {"submissions": (SCORE_COLUMNS, scores), "agreement": (AGREEMENT_COLUMNS, agreement)}
