"""What is known of source models alone, for the metrics that ask for it."""

from __future__ import annotations

from collections.abc import Mapping

from headstart.evaluation.sources.scores import Metrics
from headstart.metrics.transferability.source_facts import SourceFacts
from headstart.modules.networks.spec import NetworkSpec, prefix_model_errors


def known_facts(networks: Mapping[str, NetworkSpec], metrics: Metrics) -> dict[str, SourceFacts]:
    """Gather what is known of source models, if a metric asks for it.

    Args:
        networks: Networks of the source models, by their names.
        metrics: The metrics.

    Returns:
        Facts by source.

    Raises:
        UserError: A network cannot be built, whose parameters are counted.
    """
    if not any("facts" in metric.data for metric in metrics.values()):
        return dict.fromkeys(networks, SourceFacts())
    from headstart.modules.networks.facts import (  # torch, which stored features do without
        count_parameters,
        known_accuracy,
    )

    facts = {}
    for name, network in networks.items():
        with prefix_model_errors(name):
            facts[name] = SourceFacts(count_parameters(network), known_accuracy(network))
    return facts
