"""`headstart cka`: similarity of frozen backbones, and the scores of submissions."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from jsonargparse.typing import PositiveInt

from headstart.contract.challenge import challenge_path, read_challenge
from headstart.contract.dataset_submissions import read_any_submission
from headstart.contract.documents import CATALOG_MAX_BYTES, catalog_path, read_catalog, read_registry, registry_path
from headstart.contract.submissions import DEFAULT_MAX_BYTES
from headstart.evaluation.alignment.modal_scoring import modal_enabled, score_on_modal
from headstart.evaluation.alignment.score_files import print_score, result_files, write_score
from headstart.evaluation.alignment.score_log import log_folder
from headstart.evaluation.alignment.scoring import Embeddings, check_compared, compare, conditions, score
from headstart.evaluation.embeddings import Engines, Extraction
from headstart.metrics.similarity.catalogue import DEFAULT_MEASURE, MeasureName
from headstart.output.dashboard import Dashboard, Result, check_dashboard, publish
from headstart.output.errors import UserError
from headstart.output.files import output_folder, refuse_other_results


def cka(
    team: Literal["blue", "red"] | None = None,
    submission: str | None = None,
    models: list[str] | None = None,
    layers: list[str] | None = None,
    measure: MeasureName = DEFAULT_MEASURE,
    registry: str | None = None,
    catalog: str | None = None,
    max_catalog_bytes: PositiveInt = CATALOG_MAX_BYTES,
    challenge: str | None = None,
    output: str | None = None,
    overwrite: bool = False,
    log_dir: str | None = None,
    max_submission_bytes: PositiveInt = DEFAULT_MAX_BYTES,
    save_embeddings: bool = False,
    workers: PositiveInt | None = None,
    ray: str | None = None,
    extraction: Extraction = Extraction(),  # noqa: B008 - frozen
    logger: bool = True,
    dashboard: Dashboard = Dashboard(),  # noqa: B008 - frozen
) -> dict[str, Any]:
    """Compare representations: score a submission by linear CKA, or compare models or layers by any measure.

    Args:
        team: Team that the submission must be of; by default told by the submission.
        submission: JSON file of a Blue Team (`models`) or Red Team (`differentiating_images`); or a data set of one row
            for each, a folder or `hf://` and its name on the Hugging Face Hub.
        models: Instead of a submission, models of the registry to compare on the whole catalog.
        layers: Layers of the one model given in `models` to compare with each other.
        measure: How similarity is measured; submissions are scored by linear CKA alone, as the contract says.
        registry: Model registry; by default the file in HACKATHON_MODEL_REGISTRY, else configs/model_registry.json.
        catalog: Stimuli catalog; by default the file in HACKATHON_STIMULI_CATALOG, else configs/stimuli_catalog.jsonl.
        max_catalog_bytes: Larger catalogs are refused.
        challenge: Challenge whose rules a submission has to keep beside the contract's: a YAML file, or the name of one
            in configs/challenge. Deadline and quotas are not for whoever scores, and not looked at.
        output: Folder for score.json (cka.json without a submission) and heatmap.png, or for files that begin with
            the name of another measure; by default runs/cka, and runs/cka-layers where layers are compared.
        overwrite: Replace results of another configuration that lie in the folder.
        log_dir: Folder of the log of scores, scores.jsonl; by default that of HACKATHON_LOG_DIR, else `output`.
        max_submission_bytes: Larger submissions are refused.
        save_embeddings: Whether to write the embeddings, too, to embeddings.npz, one array per model or layer.
        workers: Run so many models side by side, each in a process of its own.
        ray: Run models on the Ray cluster at this address, or on that of this machine with `auto`.
        extraction: How embeddings are computed.
        logger: Whether to mirror the result in Weights & Biases.
        dashboard: Where it is mirrored.

    Returns:
        What score.json, or cka.json, holds.
    """
    start = time.perf_counter()
    if (submission is None) == (models is None):
        given = "nothing is" if submission is None else "both are"
        raise UserError(f"submission, models: {given} given; give a submission to score, or models to compare")
    default = "runs/cka" if layers is None else "runs/cka-layers"
    folder = output_folder("output", default if output is None else output)
    log = output_folder("log_dir", log_folder(log_dir, folder))
    if logger:
        check_dashboard(dashboard)
    remote = submission is not None and modal_enabled(registry, catalog)
    if remote and save_embeddings:
        raise UserError("save_embeddings: the embeddings stay on Modal; unset HACKATHON_MODAL_ENABLE to score here")
    known = read_registry(registry_path(registry))
    stimuli = read_catalog(catalog_path(catalog), int(max_catalog_bytes))
    rules = None if challenge is None else read_challenge(challenge_path(challenge))
    engines = Engines(workers, ray)
    other = None if measure == DEFAULT_MEASURE else measure
    compute: Callable[[], tuple[dict[str, Any], Embeddings]]
    if models is not None:
        for_submissions = {"team": team, "log_dir": log_dir, "challenge": challenge}
        _refuse(for_submissions, "it is for submissions, and models are compared without one")
        check_compared(models, layers, known)
        names = models
        made_from = {"measure": other, "model": layers and models[0], "pairwise/names": layers or models}
        compute = partial(compare, models, layers, known, stimuli, extraction, measure, engines)
    else:
        _refuse({"layers": layers}, "a submission is scored at the registry's layers; compare layers with `models`")
        _refuse({"measure": other}, f"the contract scores by {DEFAULT_MEASURE} alone; compare `models` by another")
        checked = read_any_submission(str(submission), known, stimuli, team, int(max_submission_bytes), rules)
        made_from = {
            "contract_version": checked.contract_version,
            "team": checked.team,
            "digests/submission": checked.sha256,
            "challenge": None if rules is None else rules.name,
            "digests/challenge": None if rules is None else rules.digest,
        }
        names = list(checked.models or known.entries)
        compute = partial(score, checked, known, stimuli, extraction, engines)
        if remote:
            _refuse({"workers": workers, "ray": ray}, "submissions are scored on Modal; unset HACKATHON_MODAL_ENABLE")
            compute = partial(score_on_modal, checked, known, stimuli, extraction)
    files = result_files(folder, measure, models is None, save_embeddings)
    shared = conditions(known, stimuli, names, extraction)
    refuse_other_results(files, {**shared, **made_from}, overwrite)
    document, embeddings = compute()
    # As they are here: those of a machine that is hired have other versions.
    document["digests"]["networks"] = shared["digests/networks"]
    if rules is not None:
        document["challenge"] = rules.name
        document["digests"]["challenge"] = rules.digest
    document["timings"]["total_seconds"] = time.perf_counter() - start
    files = write_score(document, files, log, embeddings)
    if overwrite and not save_embeddings:
        # Those of the overwritten results would pass for these.
        result_files(folder, measure, models is None, True)[-1].unlink(missing_ok=True)
    print_score(document, files)
    if logger:
        publish(dashboard, _result(document, files), folder)
    return document


def _refuse(options: Mapping[str, object], reason: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise UserError(f"{name}: {value} is given, but {reason}")


def _result(document: Mapping[str, Any], files: Sequence[Path]) -> Result:
    """Describe the result for the dashboard, each matrix as a table with one row and column per model."""
    pairwise = document["pairwise"]
    names = pairwise["names"]
    tables = {
        f"matrix/{kind}": (["model", *names], [[name, *row] for name, row in zip(names, pairwise[kind], strict=True)])
        for kind in ("biased", "debiased")
        if pairwise[kind] is not None
    }
    job = str(document.get("measure", "cka"))
    title = f"{job}, {len(names)} {'layers' if 'n_layers' in document else 'models'}, {document['n_stimuli']} stimuli"
    config = {"extraction": document["extraction"], "digests": document["digests"], "names": names}
    mirrored = [path for path in files if path.suffix in {".json", ".png"}]
    return Result(job, title, config, document, tables, mirrored)
