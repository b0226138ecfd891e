"""`headstart cka`: similarity of frozen backbones, and the scores of submissions."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from headstart.contract.challenge import Challenge, challenge_path, read_challenge
from headstart.contract.submissions import read_submission
from headstart.evaluation.alignment.modal_scoring import modal_enabled, score_on_modal
from headstart.evaluation.alignment.score_files import log_record, plot_score, print_score
from headstart.evaluation.alignment.score_log import append_score, log_folder
from headstart.evaluation.alignment.scoring import CatalogOptions, compare, conditions, score
from headstart.metrics.similarity.catalogue import DEFAULT_MEASURE, MeasureName
from headstart.output.errors import UserError, require_different
from headstart.output.files import output_folder
from headstart.output.printable import print_written
from headstart.output.results_folder import FIGURE_FORMATS, DashboardResults, FigureFormat

# A comparison that is checked but not computed: the models; what the result depends on, by key path in the result; and
# the function that returns the content of the JSON document.
Comparison = tuple[Sequence[str], dict[str, Any], Callable[[], dict[str, Any]]]


class CkaResults(CatalogOptions, DashboardResults):
    """Options of `headstart cka` that it shares with other commands, and the folder of its results."""


def cka(
    team: Literal["blue", "red"] | None = None,
    submission: str | None = None,
    models: list[str] | None = None,
    layers: list[str] | None = None,
    measure: MeasureName = DEFAULT_MEASURE,
    challenge: str | None = None,
    output: str | None = None,
    log_dir: str | None = None,
    figure_formats: list[FigureFormat] = FIGURE_FORMATS,
    **options: Any,
) -> dict[str, Any]:
    """Compare representations: score a submission by linear CKA, or compare models or layers by any measure.

    Args:
        team: Team of the submission. Another team in the file raises an error.
        submission: JSON file of the Blue Team (`models`) or Red Team (`differentiating_images`).
        models: Models of the registry to compare on the whole catalog, instead of a submission.
        layers: Layers of the one model given in `models` to compare with each other.
        measure: Measure of similarity. Submissions are always scored by linear CKA.
        challenge: Challenge whose rules the submission must also follow: a YAML file, or the name of one in
            configs/challenge. Its deadline and quotas do not apply here.
        output: Folder for score.json (cka.json without a submission) and the heatmap. Files of another measure begin
            with its name. By default runs/cka, or runs/cka-layers for layers.
        log_dir: Folder of the log of scores, scores.jsonl. By default that of HACKATHON_LOG_DIR, else `output`.
        figure_formats: File formats of the heatmap, such as '[png, pdf, svg]'.
        **options: Options of `CkaResults`.

    Returns:
        The contents of score.json or cka.json.
    """
    start = time.perf_counter()
    if (submission is None) == (models is None):
        mistake = "nothing is" if submission is None else "both are"
        raise UserError(f"submission, models: {mistake} given; give a submission to score, or models to compare")

    default = "runs/cka" if layers is None else "runs/cka-layers"
    # Files of another measure than the default begin with its name.
    prefix = "" if measure == DEFAULT_MEASURE else f"{measure}_"
    heatmap = f"{prefix}heatmap"
    names = [f"{measure}.json" if prefix else "cka.json" if submission is None else "score.json"]
    names += [f"{heatmap}.{suffix}" for suffix in figure_formats]
    results = CkaResults(default=default, names=names, output=output, **options)
    log = output_folder("log_dir", log_folder(log_dir, results.path))

    other = None if measure == DEFAULT_MEASURE else measure
    rules = None if challenge is None else read_challenge(challenge_path(challenge))
    if models is not None:
        for_submissions = {"team": team, "log_dir": log_dir, "challenge": challenge}
        _reject(for_submissions, "models are compared; it needs a submission")
        compared, made_from, compute = _compare_models(models, layers, measure, results)
    else:
        _reject({"layers": layers}, "a submission is scored at the registry's layers; compare layers with `models`")
        _reject({"measure": other}, f"the contract scores by {DEFAULT_MEASURE} only; other measures compare `models`")
        compared, made_from, compute = _score_submission(str(submission), team, rules, results)
    shared = conditions(compared, results.setup, rules)
    results.check_configuration({**shared, **made_from})

    document = compute()
    # The digests of the networks are those of this machine: Modal may have other versions.
    document["digests"]["networks"] = shared["digests/networks"]
    if rules is not None:
        document["challenge"] = rules.name
        document["digests"]["challenge"] = rules.digest
    document["timings"]["total_seconds"] = time.perf_counter() - start

    results.write(document, figures={heatmap: plot_score(document)}, figure_formats=figure_formats)

    files = [results.path / name for name in results.names]
    if "team" in document:
        # A command that is killed before has written its score, and the same command again logs it.
        files.append(append_score(log, log_record(document, results.path)))
    print_score(document)
    print_written(files)
    _publish(document, results)
    return document


def _compare_models(models: list[str], layers: list[str] | None, measure: str, results: CkaResults) -> Comparison:
    """Check a comparison of models, or of layers of the only model: there must be two different things to compare."""
    results.setup.registry.require("models", models)
    if layers is not None and len(models) != 1:
        raise UserError(f"models: {len(models)} models are given; give one to compare its layers")
    option, compared = ("models", models) if layers is None else ("layers", layers)
    require_different(option, compared, minimum=2)

    made_from = {
        "measure": None if measure == DEFAULT_MEASURE else measure,
        "model": layers and models[0],
        "pairwise/names": compared,
    }
    return models, made_from, partial(compare, models, layers, measure, results.setup)


def _score_submission(
    path: str, team: Literal["blue", "red"] | None, rules: Challenge | None, results: CkaResults
) -> Comparison:
    """Read and check a submission that is to be scored here or on Modal."""
    remote = modal_enabled(results.registry_option, results.catalog_option)
    registry = results.setup.registry
    submission = read_submission(path, registry, results.setup.catalog, team, rules)
    made_from = {
        "contract_version": submission.contract_version,
        "team": submission.team,
        "digests/submission": submission.sha256,
    }

    if remote:
        reason = "submissions are scored on Modal; unset HACKATHON_MODAL_ENABLE"
        _reject({"workers": results.workers, "ray": results.ray}, reason)
    compute = partial(score_on_modal if remote else score, submission, results.setup)
    return list(submission.models or registry.entries), made_from, compute


def _reject(options: Mapping[str, object], reason: str) -> None:
    """Raise a UserError if one of the options is set."""
    for name, value in options.items():
        if value is not None:
            raise UserError(f"{name}: {value} is given, but {reason}")


def _publish(document: Mapping[str, Any], results: CkaResults) -> None:
    """Mirror the result in the dashboard, each matrix as a table with one row and column per model."""
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
    results.publish(job, title, config, document, tables)
