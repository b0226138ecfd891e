"""`headstart cka-search`: submissions as a strong start for a team."""

import json
from collections.abc import Sequence
from itertools import islice
from typing import Any, Literal

import numpy as np
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
from headstart.metrics.arrays import Floats, Indices
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
from headstart.output.errors import UserError
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
    held_out: float | list[str] = 0.0,
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
        held_out: Stimuli (Blue Team) or models (Red Team) that the search does not see, for a second score. Give a
            share such as 0.5, or names of data sets (Blue Team) or models (Red Team).
        steps: Exchanges that the search tries; more take longer and may find more. By default 5000 for the Blue Team
            and 500 for the Red Team.
        output: Folder for submission.json and search.json.
        seed: Seed of the search's starts, the random submissions and the held-out part.
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
    divided = [stimulus.dataset_name for stimulus in stimuli] if team == "blue" else names
    parts = hold_out(held_out, team, divided, int(seed))

    tried = STEPS[team] if steps is None else int(steps)
    header: dict[str, Any] = {"team": team, "size": int(size), "steps": tried, "seed": int(seed)}
    shared = conditions(names, setup)
    results.check_configuration({**header, "held_out/asked": held_out or None, **shared})

    embeddings, _ = represent(names, stimuli, setup)
    whole, held_out_scores = scores_of(embeddings, team), {}
    # Before the search, because it finds out at once where hardly any submission has a score.
    with explain_embedding_errors(names):
        random = _describe(random_scores(whole, int(size), RANDOM, int(seed)))
    if parts is None:
        subset = _search(whole, names, header)
    else:
        items = "stimuli" if team == "blue" else "models"
        seen, unseen = (_select(embeddings, items, part) for part in parts)
        subset = _search(scores_of(seen, team), list(seen), header)
        scores = [_score(part, subset.members, team) for part in (seen, unseen)]
        counts = {"of": items, "n_seen": len(parts[0]), "n_held_out": len(parts[1])}
        both = dict(zip(("score_seen", "score_held_out"), scores, strict=True))
        held_out_scores = {"held_out": {"asked": held_out, **counts, **both}}

    digests = {name: shared[f"digests/{name}"] for name in ("registry", "catalog", "networks")}
    result = {"score": _score(embeddings, subset.members, team), **held_out_scores, "random": random}
    footer = {"extraction": shared["extraction"], "digests": digests}
    document = {"contract_version": CONTRACT_VERSION, **header, **result, **footer}
    submission = {"contract_version": CONTRACT_VERSION, KEYS[team]: [entries[i] for i in subset.members]}
    texts = {SUBMISSION: json.dumps(submission, indent=1) + "\n", SEARCH: json.dumps(document, indent=1) + "\n"}
    written = write_texts(results.path, texts)
    print_search(document, len(entries))
    print_written(written)
    return document


def scores_of(embeddings: Embeddings, team: str) -> SubsetScores:
    """Return the scores by which submissions of a team are searched.

    Args:
        embeddings: `[stimuli, width]` by model.
        team: The team.

    Raises:
        UserError: Linear CKA is undefined for a model.
    """
    values = list(embeddings.values())
    with explain_embedding_errors(list(embeddings)):
        return PairScores(pairwise_cka(values)) if team == "blue" else StimulusScores(values)


def _search(scores: SubsetScores, names: Sequence[str], header: dict[str, Any]) -> FoundSubset:
    """Return the best submission after all steps, and show how many are done."""
    size, steps = header["size"], header["steps"]
    title = f"{header['team'].title()} Team search"
    with explain_embedding_errors(names), Progress(title, steps, "steps") as progress:
        for done, subset in enumerate(islice(search_subsets(scores, size, header["seed"]), steps), 1):
            progress.show(done, f"score so far {subset.score:.4f}")
    return subset


def _select(embeddings: Embeddings, items: str, indices: Indices) -> Embeddings:
    """Return the embeddings of some of the stimuli, or by some of the models."""
    if items == "stimuli":
        return {name: rows[indices] for name, rows in embeddings.items()}
    names = list(embeddings)
    return {names[i]: embeddings[names[i]] for i in indices}


def _score(embeddings: Embeddings, members: Sequence[int], team: str) -> float:
    """Score a submission, given by indices, on some stimuli or by some models."""
    compared = _select(embeddings, "models" if team == "blue" else "stimuli", np.array(members))
    with explain_embedding_errors(list(compared)):
        mean = mean_over_pairs(pairwise_cka(compared.values()))
    return mean if team == "blue" else 1 - mean


def _describe(scores: Floats) -> dict[str, Any]:
    spread = float(scores.std(ddof=1))
    highest = float(scores.max())
    return {"draws": len(scores), "mean": float(scores.mean()), "standard_deviation": spread, "highest": highest}


def print_search(document: dict[str, Any], pool: int) -> None:
    """Print the result, its score on what was held out, and how far it lies above random submissions.

    Args:
        document: The content of search.json.
        pool: Number of models or stimuli to choose from.
    """
    best, random, team = document["score"], document["random"], document["team"].title()
    subset = f"{document['size']} of {pool}, the best after {document['steps']} steps"
    if "held_out" in document:
        parts = document["held_out"]
        seen, unseen, items = parts["n_seen"], parts["n_held_out"], parts["of"]
        say(f"{team} Team score {parts['score_seen']:.6f} with {subset}, on the {seen} {items} that the search saw")
        say(f"It scores {parts['score_held_out']:.6f} on the {unseen} held-out {items}, and {best:.6f} on all")
    else:
        say(f"{team} Team score {best:.6f} with {subset}; add --held_out=0.5 to also score on what it has not seen")

    # Adding 0 turns a negative 0, left by rounding, into a positive one.
    above, spread = round(best - random["mean"], 6) + 0.0, random["standard_deviation"]
    deviations = f" ({above / spread:.1f} standard deviations)" if spread > ROUNDING else ""
    say(
        f"{random['draws']} random submissions: mean {random['mean']:.6f}, standard deviation {spread:.6f}, "
        f"highest {random['highest']:.6f}; this one is {above:.6f} above their mean{deviations}"
    )


def hold_out(option: float | list[str], team: str, names: Sequence[str], seed: int) -> tuple[Indices, Indices] | None:
    """Return the indices, ascending, of the stimuli or models that a search sees, and of those that it does not.

    Args:
        option: Share that is held out, sampled at random; or names of what is held out; 0 for nothing.
        team: The Blue Team's stimuli are divided, the Red Team's models.
        names: The data set of each stimulus, or the name of each model.
        seed: Seed of the random share.

    Raises:
        UserError: The share is not between 0 and 1, a name is unknown, or a side keeps fewer than two.
    """
    if not option:
        return None
    items, kind = ("stimuli", "data sets") if team == "blue" else ("models", "models")

    if isinstance(option, list):
        if unknown := sorted(set(option) - set(names)):
            choices = ", ".join(sorted(set(names)))
            raise UserError(
                f"held_out: there are no {kind} {', '.join(unknown)}; choose from {choices}, or give a share"
            )
        unseen = np.flatnonzero(np.isin(names, option))
    elif not 0 <= option < 1:
        raise UserError(f"held_out: {option} is not a share; give a number from 0 to below 1, or names of {kind}")
    else:
        order = np.random.default_rng([seed, len(names)]).permutation(len(names))
        unseen = np.sort(order[: round(option * len(names))])

    seen = np.setdiff1d(np.arange(len(names)), unseen)
    # A similarity needs at least 2 stimuli, and a mean over pairs 2 models.
    if min(len(seen), len(unseen)) < 2:
        counts = f"{len(seen)} {items} to choose by and {len(unseen)} held out"
        raise UserError(f"held_out: {option} leaves {counts}; each takes 2 or more")
    return seen, unseen
