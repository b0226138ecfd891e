"""Score finished runs again: under another criterion, or several runs joined."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from jsonargparse.typing import ClosedUnitInterval, PositiveInt

from metrics.sample_efficiency.curves import Curves
from metrics.sample_efficiency.scores import score
from output.errors import UserError
from output.tables import print_scores

# What may differ between runs that are joined.
ORDERINGS = ("orderings", "first_ordering")


def sample_efficiency(
    runs: str,
    threshold: ClosedUnitInterval | None = None,
    consecutive: PositiveInt | None = None,
    output: str | None = None,
) -> None:
    """Score finished runs of train.py again, from their traces alone.

    Gives the table of another criterion without running again, and joins runs of the same comparison that fed
    different orderings, one per process.

    Args:
        runs: Folder of a run, or a pattern such as 'runs/fine_tuning-*' for several, which must differ in nothing but
            their orderings.
        threshold: Validation accuracy that counts as reached; by default the runs' own.
        consecutive: Evaluations in a row at which it must be reached; by default the runs' own.
        output: JSON file to write the scores to.
    """
    if output is not None and not Path(output).absolute().parent.is_dir():
        msg = f"output: the folder of {output!r} does not exist; create it first"
        raise UserError(msg)
    folders = [Path(folder) for folder in sorted(glob(runs))]  # noqa: PTH207 - Path.glob takes no absolute pattern
    if not folders:
        msg = f"runs: {runs!r} matches no folder; name folders that train.py wrote"
        raise UserError(msg)
    documents, traces, models = zip(*(_read(folder) for folder in folders), strict=True)
    settings = [
        {
            **_without_orderings(document),
            "methods": curves.methods,
            "model": model,
            **_criterion(curves, threshold, consecutive),
        }
        for document, curves, model in zip(documents, traces, models, strict=True)
    ]
    _require_comparable(folders, settings, traces)
    least = traces[0].threshold if threshold is None else float(threshold)
    streak = traces[0].consecutive if consecutive is None else int(consecutive)
    traces = [replace(curves, threshold=least, consecutive=streak) for curves in traces]
    found = [curves.samples_to_criterion() for curves in traces]
    samples, onset = (np.concatenate(part, axis=1) for part in zip(*found, strict=True))
    final = np.concatenate([curves.accuracy[..., -1] for curves in traces], axis=1)
    limit = min(_known_until(curves) for curves in traces)
    document = {
        "runs": [str(folder) for folder in folders],
        "complete": all(document["complete"] for document in documents),
        "criterion": {"threshold": least, "consecutive": streak},
        "protocol": {**documents[0]["protocol"], "orderings": samples.shape[1]},
        "orderings": np.concatenate([curves.orderings for curves in traces]).tolist(),
        "restricted_at": limit,
        **score(traces[0].methods, samples, onset, final, limit),
    }
    print_scores(document)
    if output is not None:
        partial = Path(f"{output}.partial")
        partial.write_text(json.dumps(document, indent=1, allow_nan=False))
        partial.replace(output)


def _read(run: Path) -> tuple[dict[str, Any], Curves, dict[str, Any]]:
    """Read the results, the traces and the configuration of the methods."""
    missing = [name for name in ("results.json", "curves.npz", "config.yaml") if not (run / name).is_file()]
    if missing:
        msg = f"runs: {str(run)!r} has no {' and no '.join(missing)}; name folders that train.py wrote"
        raise UserError(msg)
    try:
        document: dict[str, Any] = json.loads((run / "results.json").read_text())
        return document, Curves.load(run / "curves.npz"), yaml.safe_load((run / "config.yaml").read_text())["model"]
    except (ValueError, KeyError, TypeError, zipfile.BadZipFile, yaml.YAMLError) as error:
        msg = f"runs: the files in {str(run)!r} are damaged ({error}); run train.py again"
        raise UserError(msg.replace("\n", " ")) from error


def _without_orderings(document: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document["protocol"].items() if key not in ORDERINGS}


def _criterion(curves: Curves, threshold: float | None, consecutive: int | None) -> dict[str, Any]:
    """Give those parts of a run's criterion that are not replaced."""
    own = {"threshold": curves.threshold, "consecutive": curves.consecutive}
    replaced = {"threshold": threshold, "consecutive": consecutive}
    return {name: value for name, value in own.items() if replaced[name] is None}


def _require_comparable(folders: list[Path], settings: list[dict[str, Any]], traces: Sequence[Curves]) -> None:
    """Check that the runs are of one comparison and that no ordering comes twice."""
    there = settings[0]
    for folder, here in zip(folders[1:], settings[1:], strict=True):
        differing = [key for key in {**there, **here} if there.get(key) != here.get(key)]
        if differing:
            pair = f"{str(folder)!r} differs from {str(folders[0])!r}"
            msg = f"runs: {pair} in {', '.join(differing)}; only orderings may differ"
            raise UserError(msg)
    numbers = np.concatenate([curves.orderings for curves in traces])
    twice = np.unique(numbers[np.bincount(numbers)[numbers] > 1])
    if len(twice):
        msg = f"runs: the orderings {', '.join(map(str, twice))} come more than once; give each run once"
        raise UserError(msg)


def _known_until(curves: Curves) -> int:
    """Give the samples up to which it is known whether each trace meets the criterion.

    A run stops early once all have met its own criterion; under a stricter one, a trace that has not met it by then
    is censored where it ends, not at the sample limit.
    """
    samples, _ = curves.samples_to_criterion()
    return curves.limit if np.isfinite(samples).all() else min(curves.limit, _end(curves))


def _end(curves: Curves) -> int:
    steps = np.diff(curves.samples_seen, prepend=0)
    # Less than one evaluation is left before the limit: nothing can be met in between.
    last = int(curves.samples_seen[-1])
    return curves.limit if last + int(steps[0]) > curves.limit else last
