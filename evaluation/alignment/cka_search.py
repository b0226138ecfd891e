"""`headstart cka-search`: submissions as a strong start for a team."""

import json
from collections.abc import Sequence
from itertools import islice
from typing import Any, Literal

from jsonargparse.typing import PositiveInt

from headstart.contract.schema import CONTRACT_VERSION
from headstart.contract.submissions import KEYS
from headstart.evaluation.alignment.scoring import (
    CatalogOptions,
    Embeddings,
    conditions,
    explain_embedding_errors,
    represent,
)
from headstart.metrics.arrays import Floats
from headstart.metrics.similarity.catalogue import mean_over_pairs
from headstart.metrics.similarity.cka import pairwise_cka
from headstart.metrics.similarity.stimulus_scores import StimulusScores
from headstart.metrics.similarity.subset_search import (
    FoundSubset,
    PairScores,
    SubsetScores,
    check_size,
    random_scores,
    search_subsets,
)
from headstart.output.files import write_texts
from headstart.output.printable import print_written, say
from headstart.output.progress import Progress
from headstart.output.results_folder import ResultsFolder
from headstart.output.seeds import Seed

SEARCH, SUBMISSION = "search.json", "submission.json"
# Steps of a search: those for models take less than a millisecond each, those for stimuli up to seconds.
STEPS = {"blue": 5000, "red": 500}
# Random submissions to compare with.
RANDOM = 100
# A smaller standard deviation of random submissions is a rounding error.
ROUNDING = 1e-9


class SearchResults(CatalogOptions, ResultsFolder):
    """Options of `headstart cka-search` that it shares with other commands, and the folder of its results."""


def cka_search(
    team: Literal["blue", "red"],
    size: PositiveInt,
    steps: PositiveInt | None = None,
    output: str = "runs/cka-search",
    seed: Seed = 0,
    **options: Any,
) -> dict[str, Any]:
    """Search for a strong submission: models that agree (Blue Team), or stimuli on which models differ (Red Team).

    It writes submission.json, which `headstart cka` scores. It compares the score with random submissions of the same
    size. The search is greedy, with exchanges and restarts: a better submission may exist.

    Args:
        team: Team that the submission is for.
        size: Number of models or stimuli of the submission; 2 or more.
        steps: Exchanges that the search tries; more take longer and may find more. By default 5000 for the Blue Team
            and 500 for the Red Team.
        output: Folder for submission.json and search.json.
        seed: Seed of the search's starts and the random submissions.
        **options: Options of `SearchResults`.

    Returns:
        The contents of search.json.
    """
    results = SearchResults(default=output, names=(SEARCH, SUBMISSION), output=output, **options)
    setup, stimuli = results.setup, results.setup.catalog.stimuli
    names = list(setup.registry.entries)
    entries = names if team == "blue" else [stimulus.model_dump() for stimulus in stimuli]
    with explain_embedding_errors(names):
        check_size(int(size), len(entries), "models" if team == "blue" else "stimuli")

    tried = STEPS[team] if steps is None else int(steps)
    header: dict[str, Any] = {"team": team, "size": int(size), "steps": tried, "seed": int(seed)}
    shared = conditions(names, setup)
    results.check_configuration({**header, **shared})

    embeddings, _ = represent(names, stimuli, setup)
    values = list(embeddings.values())
    with explain_embedding_errors(names):
        scores = PairScores(pairwise_cka(values)) if team == "blue" else StimulusScores(values)
        # Before the search, because it finds out at once where hardly any submission has a score.
        random = _describe(random_scores(scores, int(size), RANDOM, int(seed)))
    subset = _search(scores, names, header)

    digests = {name: shared[f"digests/{name}"] for name in ("registry", "catalog", "networks")}
    document = {
        "contract_version": CONTRACT_VERSION,
        **header,
        "score": _score(embeddings, subset.members, team),
        "random": random,
        "extraction": shared["extraction"],
        "digests": digests,
    }
    submission = {"contract_version": CONTRACT_VERSION, KEYS[team]: [entries[i] for i in subset.members]}
    texts = {SUBMISSION: json.dumps(submission, indent=1) + "\n", SEARCH: json.dumps(document, indent=1) + "\n"}
    written = write_texts(results.path, texts)
    print_search(document, len(entries))
    print_written(written)
    return document


def _search(scores: SubsetScores, names: Sequence[str], header: dict[str, Any]) -> FoundSubset:
    """Return the best submission after all steps, and show how many are done."""
    size, steps = header["size"], header["steps"]
    title = f"{header['team'].title()} Team search"
    with explain_embedding_errors(names), Progress(title, steps, "steps") as progress:
        for done, subset in enumerate(islice(search_subsets(scores, size, header["seed"]), steps), 1):
            progress.show(done, f"score so far {subset.score:.4f}")
    return subset


def _score(embeddings: Embeddings, members: Sequence[int], team: str) -> float:
    """Score a submission, given by indices."""
    if team == "blue":
        names = list(embeddings)
        compared = {names[i]: embeddings[names[i]] for i in members}
    else:
        compared = {name: rows[list(members)] for name, rows in embeddings.items()}
    with explain_embedding_errors(list(compared)):
        mean = mean_over_pairs(pairwise_cka(compared.values()))
    return mean if team == "blue" else 1 - mean


def _describe(scores: Floats) -> dict[str, Any]:
    spread = float(scores.std(ddof=1))
    highest = float(scores.max())
    return {"draws": len(scores), "mean": float(scores.mean()), "standard_deviation": spread, "highest": highest}


def print_search(document: dict[str, Any], pool: int) -> None:
    """Print the result, and how far its score lies above random submissions.

    Args:
        document: The content of search.json.
        pool: Number of models or stimuli to choose from.
    """
    best, random, team = document["score"], document["random"], document["team"].title()
    say(f"{team} Team score {best:.6f} with {document['size']} of {pool}, the best after {document['steps']} steps")

    # Adding 0 turns a negative 0, left by rounding, into a positive one.
    above, spread = round(best - random["mean"], 6) + 0.0, random["standard_deviation"]
    deviations = f" ({above / spread:.1f} standard deviations)" if spread > ROUNDING else ""
    say(
        f"{random['draws']} random submissions: mean {random['mean']:.6f}, standard deviation {spread:.6f}, "
        f"highest {random['highest']:.6f}; this one is {above:.6f} above their mean{deviations}"
    )
