"""The results folder of commands that score source models, with their common check of the configuration."""

from collections.abc import Mapping
from typing import Any

from headstart.contract.documents import Registry
from headstart.evaluation.embeddings import Extraction
from headstart.evaluation.sources.metric_names import digest_metrics
from headstart.evaluation.sources.scores import Metrics
from headstart.modules.networks.spec import NetworkSpec
from headstart.output.results_folder import DashboardResults

REPORT = "report.md"


class ScoringResults(DashboardResults):
    """Results of a command that scores source models.

    Args:
        default: As for `ResultsFolder`.
        document: Name of the JSON document.
        extraction: Settings of the feature extraction.
        **options: Options of `DashboardResults`.

    Attributes:
        digests: Digests of the inputs of the scores; empty before `check_sources`.
    """

    def __init__(
        self,
        default: str,
        document: str,
        extraction: Extraction = Extraction(),  # noqa: B008 - frozen
        **options: Any,
    ) -> None:
        super().__init__(default, (document, "scores.csv", REPORT), **options)
        self.extraction = extraction
        self.digests: dict[str, Any] = {}

    def check_sources(
        self,
        registry: Registry,
        networks: Mapping[str, NetworkSpec],
        metrics: Metrics,
        settings: Mapping[str, Any],
        digests: Mapping[str, Any] | None = None,
    ) -> None:
        """Raise an error if the folder holds results of other sources, metrics or settings.

        Args:
            registry: The model registry.
            networks: Networks of the sources.
            metrics: The metrics.
            settings: Other values that change the results, by their paths in the document.
            digests: Digests of other files.

        Raises:
            UserError: As for `check_configuration`.
        """
        self.digests = {
            "registry": registry.sha256,
            "networks": {name: network.digest for name, network in networks.items()},
            "metrics": digest_metrics(metrics),
            **(digests or {}),
        }
        inputs = {f"digests/{name}": digest for name, digest in self.digests.items()}
        extraction = {f"extraction/{name}": getattr(self.extraction, name) for name in ("precision", "seed")}
        self.check_configuration({**inputs, **settings, **extraction})
