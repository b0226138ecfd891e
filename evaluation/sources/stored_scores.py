"""Scores on disk under a digest of everything that they depend on, so that none is computed twice."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from headstart.evaluation.sources import scores
from headstart.evaluation.sources.scores import Score
from headstart.metrics import arrays as array_module
from headstart.metrics import transferability
from headstart.metrics.arrays import Array
from headstart.metrics.transferability.catalogue import METRICS
from headstart.metrics.transferability.inputs import Inputs
from headstart.output.files import replacing
from headstart.store.json_digest import digest_of, read_sealed, sealed

PACKAGES = ("numpy", "scipy")
SCORE = TypeAdapter(Score)
DIGESTED_AT_ONCE = 4096


class StoredScores:
    """Scores of metrics of the catalogue; the dependencies of the user's own functions are unknown.

    The cache folder has one file for each score. The same score of the same features has the same file, whatever the
    names of the source and the target.

    Args:
        cache: The cache folder.
    """

    def __init__(self, cache: Path) -> None:
        self.folder = cache / "scores"
        # The code that scores depend on.
        files = [Path(str(array_module.__file__)), Path(str(scores.__file__))]
        files += sorted(Path(str(transferability.__file__)).parent.glob("*.py"))
        self.code = hashlib.sha256(b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files)).hexdigest()

    def identity(self, inputs: Inputs, parts: NDArray[np.int64]) -> dict[str, Any]:
        """Return everything that all scores of one source on one target depend on.

        Args:
            inputs: The inputs of the metrics.
            parts: The part of each photo that is left out, `[samples]`.
        """
        arrays = [inputs.features, inputs.labels, parts, *([] if inputs.logits is None else [inputs.logits])]
        return {
            "arrays": [[*array.shape, str(array.dtype), _digest(array)] for array in arrays],
            "facts": asdict(inputs.facts),
            "seed": inputs.seed,
            "code": self.code,
            "versions": {name: metadata.version(name) for name in PACKAGES},
        }

    def find(self, identity: Mapping[str, Any], names: Sequence[str]) -> dict[str, Score]:
        """Return the scores that are stored, by the metric's name.

        Args:
            identity: Values that they depend on, as for `identity`.
            names: The metrics, with their options.
        """
        stored = {}
        for name, file in self._files(identity, names):
            # Scores that cannot be read are computed again.
            with suppress(OSError, ValueError):
                stored[name] = SCORE.validate_python(read_sealed(file))
        return stored

    def keep(self, identity: Mapping[str, Any], computed: Mapping[str, Score]) -> None:
        """Write scores; errors of the disk are ignored.

        Args:
            identity: Values that they depend on, as for `identity`.
            computed: The scores by the metric's name.
        """
        for name, file in self._files(identity, computed):
            with suppress(OSError):
                file.parent.mkdir(parents=True, exist_ok=True)
                with replacing(file) as partial:
                    partial.write_text(json.dumps(sealed(asdict(computed[name]), {})))

    def _files(self, identity: Mapping[str, Any], names: Iterable[str]) -> Iterator[tuple[str, Path]]:
        """Yield the metrics of the catalogue among some with their files."""
        for name in names:
            if name.partition("(")[0] in METRICS:
                digest = digest_of({**identity, "metric": name})
                yield name, self.folder / digest[:2] / f"{digest}.json"


def _digest(array: Array) -> str:
    """Return the SHA-256 of an array's values, some rows at a time."""
    digest = hashlib.sha256()
    for first in range(0, len(array), DIGESTED_AT_ONCE):
        digest.update(np.ascontiguousarray(array[first : first + DIGESTED_AT_ONCE]).data)
    return digest.hexdigest()
