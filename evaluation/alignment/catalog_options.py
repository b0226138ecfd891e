"""The options that commands over a registry of models and a catalog of stimuli share."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from jsonargparse.typing import PositiveInt

from headstart.contract.documents import CATALOG_MAX_BYTES, catalog_path, read_catalog, read_registry, registry_path
from headstart.engines.options import EngineOptions
from headstart.evaluation.alignment.scoring import ScoringSetup
from headstart.evaluation.embeddings import Extraction


class CatalogOptions(EngineOptions):
    """The registry, the catalog, and how embeddings are computed.

    As a base class, it adds its options to those of the next base class.

    Args:
        registry: Model registry; by default the file in HACKATHON_MODEL_REGISTRY, else configs/model_registry.json.
        catalog: Stimuli catalog; by default the file in HACKATHON_STIMULI_CATALOG, else configs/stimuli_catalog.jsonl.
        max_catalog_bytes: Larger catalogs are refused.
        extraction: How embeddings are computed.
        **options: Options of the next base class.

    Attributes:
        registry_option: The option `registry`.
        catalog_option: The option `catalog`.
    """

    def __init__(
        self,
        registry: str | None = None,
        catalog: str | None = None,
        max_catalog_bytes: PositiveInt = CATALOG_MAX_BYTES,
        extraction: Extraction = Extraction(),  # noqa: B008 - frozen
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.registry_option, self.catalog_option = registry, catalog
        self._max_catalog_bytes, self._extraction = int(max_catalog_bytes), extraction

    @cached_property
    def setup(self) -> ScoringSetup:
        """The documents, and how embeddings are computed; a UserError where a file is invalid or too large."""
        registry = read_registry(registry_path(self.registry_option))
        catalog = read_catalog(catalog_path(self.catalog_option), self._max_catalog_bytes)
        return ScoringSetup(registry, catalog, self._extraction, self)
