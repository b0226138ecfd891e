"""`headstart submissions-report`: submissions of one team by every measure of similarity."""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from jsonargparse.typing import PositiveInt

from headstart.contract.challenge import challenge_path, read_challenge
from headstart.contract.documents import CATALOG_MAX_BYTES, catalog_path, read_catalog, read_registry, registry_path
from headstart.contract.schema import CONTRACT_VERSION
from headstart.contract.submissions import DEFAULT_MAX_BYTES, KEYS, read_submission
from headstart.evaluation.alignment.scoring import conditions
from headstart.evaluation.alignment.submission_ranking import markdown_ranking, print_ranking, rank_submissions
from headstart.evaluation.alignment.submission_scores import readings, score_submissions
from headstart.evaluation.embeddings import Engines, Extraction
from headstart.metrics.similarity.catalogue import SIMILARITY_MEASURES, MeasureName
from headstart.output.errors import UserError
from headstart.output.files import output_folder, refuse_other_results, write_texts
from headstart.output.home import expand_home
from headstart.output.markup import csv_text, escape_cell
from headstart.output.printable import print_written, printable

FILES = ("submissions.json", "submissions.csv", "agreement.csv", "submissions.md")
SCORE_COLUMNS = ("submission", "measure", "score", "rank", "reason")
AGREEMENT_COLUMNS = ("measure", "kendall_tau", "swapped_pairs", "compared_pairs")


def submissions_report(
    submissions: str | list[str],
    team: Literal["blue", "red"] | None = None,
    registry: str | None = None,
    catalog: str | None = None,
    challenge: str | None = None,
    measures: list[MeasureName] | None = None,
    output: str = "runs/submissions-report",
    overwrite: bool = False,
    max_submission_bytes: PositiveInt = DEFAULT_MAX_BYTES,
    max_catalog_bytes: PositiveInt = CATALOG_MAX_BYTES,
    workers: PositiveInt | None = None,
    ray: str | None = None,
    extraction: Extraction = Extraction(),  # noqa: B008 - frozen
) -> dict[str, Any]:
    """Rank one team's submissions by every measure of similarity, and say where the contract's ranking would change.

    Nothing is appended to the log of scores: the contract's score is that of `headstart cka`.

    Args:
        submissions: JSON files, patterns such as 'blue/*.json', or folders, of which every submission counts.
        team: Team that the submissions must be of; by default that of the first.
        registry: Model registry; by default the file in HACKATHON_MODEL_REGISTRY, else configs/model_registry.json.
        catalog: Stimuli catalog; by default the file in HACKATHON_STIMULI_CATALOG, else configs/stimuli_catalog.jsonl.
        challenge: Challenge whose rules the submissions have to keep beside the contract's: a YAML file, or the name of
            one in configs/challenge.
        measures: Measures of similarity beside linear CKA, which is the contract's; by default all.
        output: Folder for submissions.json, submissions.csv, agreement.csv and submissions.md.
        overwrite: Replace results of another configuration that lie in the folder.
        max_submission_bytes: Larger submissions are refused.
        max_catalog_bytes: Larger catalogs are refused.
        workers: Run so many models side by side, each in a process of its own.
        ray: Run models on the Ray cluster at this address, or on that of this machine with `auto`.
        extraction: How embeddings are computed.

    Returns:
        What submissions.json holds.
    """
    folder = output_folder("output", output)
    known = read_registry(registry_path(registry))
    stimuli = read_catalog(catalog_path(catalog), int(max_catalog_bytes))
    rules = None if challenge is None else read_challenge(challenge_path(challenge))
    paths = _find([submissions] if isinstance(submissions, str) else submissions, int(max_submission_bytes))
    read = {}
    for name, path in _named(paths).items():
        read[name] = read_submission(path, known, stimuli, team, int(max_submission_bytes), rules)
        team = read[name].team
    if team == "red" and len(known.entries) < 2:
        raise UserError(f"registry: {str(known.path)!r} has one model; CKA compares two or more")
    models = list(known.entries) if team == "red" else sorted({name for each in read.values() for name in each.models})
    chosen = list(SIMILARITY_MEASURES) if measures is None else measures
    shared = conditions(known, stimuli, models, extraction)
    digests = {name: each.sha256 for name, each in read.items()}
    made_from: dict[str, Any] = {"contract_version": CONTRACT_VERSION, "team": team, "digests/submissions": digests}
    made_from["measures"] = list(readings(chosen))
    made_from["challenge"] = None if rules is None else rules.name
    made_from["digests/challenge"] = None if rules is None else rules.digest
    refuse_other_results([folder / name for name in FILES], {**shared, **made_from}, overwrite)
    ranking = rank_submissions(score_submissions(read, known, stimuli, extraction, Engines(workers, ray), chosen))
    document: dict[str, Any] = {
        "contract_version": CONTRACT_VERSION,
        "team": team,
        **({} if rules is None else {"challenge": rules.name}),
        "n_submissions": len(read),
        **ranking,
        "extraction": shared["extraction"],
        "digests": {
            **{name: shared[f"digests/{name}"] for name in ("registry", "catalog", "networks")},
            "submissions": digests,
            **({} if rules is None else {"challenge": rules.digest}),
        },
    }
    files = write_texts(folder, dict(zip(FILES, _texts(document), strict=True)))
    print_ranking(document)
    print_written(files)
    return document


def _find(given: Sequence[str], max_bytes: int) -> list[Path]:
    """Find the files of submissions that are meant by files, patterns and folders, each once.

    Raises:
        UserError: One of these means no file, or there are fewer than 2 in all.
    """
    found: dict[Path, Path] = {}
    for each in given:
        path = expand_home(each)
        if path.is_dir():
            paths = [file for file in sorted(path.rglob("*.json")) if _may_be_submission(file, max_bytes)]
        elif path.exists() or not glob.has_magic(each):
            paths = [path]
        else:
            anchor = Path(path.anchor or ".")
            paths = sorted(anchor.glob(str(path.relative_to(path.anchor))))
        if not paths:
            raise UserError(f"submissions: {each!r} has no submission; give files, patterns or folders that have")
        found |= {file.resolve(): file for file in paths}
    if len(found) < 2:
        raise UserError(f"submissions: {len(found)} given, but a ranking needs 2 or more")
    return list(found.values())


def _may_be_submission(path: Path, max_bytes: int) -> bool:
    """Tell whether a file of a folder is to be read as a submission; what cannot be told is, so that it is named."""
    if not path.is_file():
        return False
    try:
        document = json.loads(path.read_bytes()) if path.stat().st_size <= max_bytes else None
    except (OSError, ValueError, RecursionError):
        return True
    return isinstance(document, dict) and not set(KEYS.values()).isdisjoint(document)


def _named(paths: Sequence[Path]) -> dict[str, Path]:
    """Name submissions by their files, and where these have the same name by their folders, too."""
    names = [path.stem for path in paths]
    if len(set(names)) < len(names):
        common = os.path.commonpath([path.absolute().parent for path in paths])
        names = [path.absolute().relative_to(common).with_suffix("").as_posix() for path in paths]
    return {printable(name): path for name, path in zip(names, paths, strict=True)}


def _texts(document: dict[str, Any]) -> list[str]:
    """Write the files' texts, in the order of `FILES`."""
    scores = [
        (escape_cell(name), reading, each["score"], each["rank"], escape_cell(each["reason"]))
        for name, found in document["scores"].items()
        for reading, each in found.items()
    ]
    agreement = [
        (reading, *(each[column] for column in AGREEMENT_COLUMNS[1:])) for reading, each in document["measures"].items()
    ]
    return [
        json.dumps(document, indent=1, allow_nan=False) + "\n",
        csv_text(SCORE_COLUMNS, scores),
        csv_text(AGREEMENT_COLUMNS, agreement),
        markdown_ranking(document),
    ]
