"""What a page says first: who wins, by how much and how sure, or which source to transfer, and whether to trust it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from headstart.contract.tables.table import metric_titles
from headstart.evaluation.audit.rankers import MEAN_RANK
from headstart.evaluation.audit.tables import ranker_titles
from headstart.evaluation.estimates import with_interval
from headstart.metrics.ranking.over_targets import FEWEST, LEVEL
from headstart.metrics.sample_efficiency.scores import holm
from headstart.metrics.similarity.catalogue import DEFAULT_MEASURE, SIMILARITY_MEASURES
from headstart.output.tables import format_estimate, format_number

Document = Mapping[str, Any]

# Settings that have a sentence of their own where no method is compared over all of them.
MOST_TOLD = 3
# The measure of an audit that decides, as in its tables.
MEASURE, MEASURED = "weighted_kendall", "weighted Kendall"


def of_comparison(document: Document) -> list[str]:
    """Return who needs the fewest samples, by how much, and how sure that is.

    Args:
        document: The content of `leaderboard.json`.
    """
    settings = document["settings"]
    if document["over_settings"]:
        return [_over_settings(document["over_settings"], settings)]

    more = len(settings) - MOST_TOLD
    rest = [f"{more} more setting{'s' * (more > 1)} below."] if more > 0 else []
    return [*map(_of_setting, settings[:MOST_TOLD]), *rest]


def _over_settings(over: Document, settings: list[Document]) -> str:
    best, second = over["methods"][:2]
    [chance] = [
        each
        for each in over["probability_of_improvement"]
        if (each["better"], each["worse"]) == (best["name"], second["name"])
    ]
    low = chance["interval"][0]
    unsure = ", which chance can explain" if low is None or low <= 0.5 else ""
    names = over["settings"]
    first = sum(best["name"] in setting["tied_for_first"] for setting in settings if setting["name"] in names)

    mean = format_estimate(best["interquartile_mean"], best["interquartile_mean_interval"], ".2f")
    return (
        f"{best['name']} needs the fewest labelled samples over {over['of']}: {mean} times the mean of all methods. On "
        f"the same ordering it needs fewer than {second['name']}, the next one, with a probability of "
        f"{format_estimate(chance['probability'], chance['interval'], '.2f')}{unsure}. It is first, or not "
        f"significantly different from the first, in {first} of {len(names)} settings."
    )


def _of_setting(setting: Document) -> str:
    """Return the sentences on one setting."""
    best, threshold = setting["methods"][0], f"{setting['threshold']:.0%}"
    if not best["reached"]:
        return f"{setting['name']}: no method met the criterion of {threshold} in any ordering."
    samples = format_estimate(best["restricted_mean"], best["restricted_mean_interval"], ".0f")
    sentence = f"{best['name']} needs the fewest labelled samples on {setting['name']}: {samples} to reach {threshold}"

    if best["relative_improvement"] is not None:
        less = format_estimate(best["relative_improvement"], best["relative_improvement_interval"], ".0f")
        sentence += f", {less} % fewer than {setting['baseline']}"
    if best["reached"] < best["orderings"]:
        sentence += (
            f". It reached that in {best['reached']} of {best['orderings']} orderings; the others count as the limit"
        )

    tied = [name for name in setting["tied_for_first"] if name != best["name"]]
    others = f"Not significantly different: {', '.join(tied)}." if tied else "All others need significantly more."
    return f"{sentence}. {others if len(setting['methods']) > 1 else ''}".rstrip()


def of_similarity(document: Document) -> str:
    """Return which of the models are the most and the least alike, and the mean over pairs or the score."""
    measure = SIMILARITY_MEASURES[str(document.get("measure", DEFAULT_MEASURE))]
    names, values = document["pairwise"]["names"], np.array(document["pairwise"]["biased"])
    pairs = [(values[i, j], f"{names[i]} and {names[j]}") for i in range(len(names)) for j in range(i)]

    beginning = f"{document['team'].title()} Team has the score {document['score']:.4f}. " if "team" in document else ""
    if len(pairs) < 2:
        return beginning + (f"{pairs[0][1]}: {measure.title} {pairs[0][0]:.2f}." if pairs else f"{names[0]} is alone.")
    (least, unlike), (most, alike) = min(pairs), max(pairs)
    mean = float(np.mean([value for value, _ in pairs]))
    return (
        f"{beginning}Of {len(names)} {'layers' if 'n_layers' in document else 'models'}, {alike} are the most alike by "
        f"{measure.title} ({most:.2f}), and {unlike} the least ({least:.2f}). The mean over pairs is {mean:.2f}."
    )


def of_transferability(document: Document) -> str:
    """Return the source of the best mean rank for each target."""
    sentences = []
    for target, ranks in document["mean_ranks"].items():
        ranked = {source: rank for source, rank in ranks.items() if rank is not None}
        if not ranked:
            sentences.append(f"For {target}, no source has a mean rank.")
            continue
        lowest = min(ranked.values())
        best = [source for source, rank in ranked.items() if rank == lowest]
        sentences.append(
            f"For {target}, transfer {' or '.join(best)}: mean rank {lowest:.1f} of {len(ranked)} sources."
        )
    return f"{' '.join(sentences)} headstart audit and stability say whether such rankings can be trusted."


def of_audit(document: Document) -> str:
    """Return the best metric by weighted Kendall, and whether it beats one fixed ranking of the sources."""
    titles, best = ranker_titles(document), document["best"][MEASURE]
    fixed = with_interval(document["rankers"][MEAN_RANK][MEASURE]) if MEAN_RANK in document["rankers"] else "nothing"
    static = f"One fixed ranking of the sources, which knows nothing of the target, reaches {fixed}"
    if not best["metrics"]:
        first = min(document["ranks"]["sources"].items(), key=lambda item: item[1]["mean"])[0]
        return f"{static} by {MEASURED}; it puts {first} first. There is no metric to compare with it."

    leader = best["metrics"][0]
    names, reached = " and ".join(titles[name] for name in best["metrics"]), document["rankers"][leader][MEASURE]
    text = f"{names} predict{'s' * (len(best['metrics']) == 1)} performance best: {MEASURED} {with_interval(reached)}"
    if best["tied"]:
        text += f"; not significantly different: {', '.join(titles[name] for name in best['tied'])}"
    return f"{text}. {static}. {_verdict(document, leader)}"


def _verdict(document: Document, leader: str) -> str:
    """Return whether a metric is better than the fixed ranking, adjusted for having been chosen among all metrics."""
    differences = {name: each[MEASURE] for name, each in document.get("minus_mean_rank", {}).items()}
    tested = [name for name, each in differences.items() if each["p_value"] is not None]
    if leader not in tested or len(document["targets"]) < FEWEST:
        return f"Whether that is more than chance cannot be told from {len(document['targets'])} targets."
    p_value = dict(zip(tested, holm([differences[name]["p_value"] for name in tested]), strict=True))[leader]
    low = document["rankers"][leader][MEASURE]["ci95"][0]
    if p_value <= LEVEL and differences[leader]["mean"] > 0 and low is not None and low > 0:
        return "The difference is significant, adjusted for all metrics, so it can be trusted on such targets."
    return "It is not significantly better, adjusted for all metrics, so this table is no reason to trust it."


def of_stability(document: Document) -> str:
    """Return which part of the experiment changes the ranking of the metrics most, and which metric wins most often."""
    agreements = {name: value for name, value in document["setup_stability"].items() if value is not None}
    rates = {name: rate["average"] for name, rate in document["win_rate_percent"].items() if rate.get("average")}
    sentences = []
    if agreements:
        part = min(agreements, key=agreements.__getitem__)
        interval = document.get("setup_stability_ci95", {}).get(part)
        agree = format_estimate(agreements[part], interval, ".2f")
        sentences.append(
            f"The {part} changes the ranking of the metrics most: two experiments that differ in it alone agree by "
            f"{agree} (Kendall's tau; 1 is the same ranking)."
        )
    if rates:
        winner = max(rates, key=rates.__getitem__)
        [title] = metric_titles([winner])
        share = format_number(rates[winner], ".0f")
        sentences.append(f"{title} wins most often, in {share} % of {document['experiments']:,} experiments.")
    return " ".join(sentences) or "Nothing is defined in these experiments."
