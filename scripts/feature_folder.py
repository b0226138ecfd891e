"""The folder that features are exported to: all of its files appear together, or none."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from headstart.output.files import write_together
from headstart.output.progress import Progress
from headstart.output.results_folder import ResultsFolder
from headstart.scripts.exported_features import ExportedFeatures
from headstart.scripts.feature_card import JSON, PAGE, card_page, versions
from headstart.scripts.feature_formats import PATTERNS, Format, feature_files, feature_writers, require_format

# What decides the files, by keys of the card.
MADE_FROM = ("pictures_sha256", "weights_sha256", "preprocessing", "precision", "device", "dtype", "format")


class FeatureFolder(ResultsFolder):
    """The folder of an export.

    Args:
        export: The folder.
        format: Format of the features.
        overwrite: Replace other features in the folder.

    Raises:
        UserError: The folder cannot be written or holds files of another origin, or the format's package is missing.
    """

    option = "export"

    def __init__(self, export: str, format: Format, overwrite: bool) -> None:  # noqa: A002 - name of the option
        require_format(format)
        super().__init__(export, (JSON, PAGE), overwrite=overwrite)
        self.format = format
        self.names = [JSON, PAGE, *self._feature_files()]
        # Before a long computation, not after it.
        self.check_configuration({"format": format})

    def _feature_files(self) -> list[str]:
        return sorted(path.name for pattern in PATTERNS for path in self.path.glob(pattern))

    def write_features(self, exported: ExportedFeatures, about: Mapping[str, Any]) -> dict[str, Any]:
        """Write features, index and card.

        Args:
            exported: The features.
            about: What the card says of their origin: `backbone`, `seed`, `command`, and what decides the rows.

        Returns:
            The card.

        Raises:
            UserError: The folder holds other features, or cannot be written.
        """
        files = feature_files(exported, self.format)
        card: dict[str, Any] = {
            "schema_version": 1,
            "pictures": len(exported),
            "width": exported.width,
            "dtype": exported.dtype,
            "format": self.format,
            "files": [{"name": name, "first": part.start, "pictures": len(part)} for name, part in files.items()],
            "classes": exported.classes,
            "left_out": exported.left_out,
            "unreadable": {exported.name(index): reason for index, reason in exported.unreadable.items()},
            "pictures_sha256": exported.fingerprint,
            **about,
            "versions": versions(),
        }
        # As it is read again: with lists in place of tuples.
        card = json.loads(json.dumps(card))
        self.check_configuration({name: card[name] for name in MADE_FROM})

        texts = {name: str(card[name]) for name in ("weights_sha256", "precision", "command")}
        with self.writable(), Progress("export", len(exported), "pictures") as progress:
            writers = feature_writers(exported, self.format, texts, progress)
            for name, text in ((PAGE, card_page(card)), (JSON, json.dumps(card, indent=1) + "\n")):
                writers[name] = partial(Path.write_text, data=text, encoding="utf-8", newline="")
            self.written += write_together(self.path, writers)
            for name in self._feature_files():
                # Of the export that is replaced.
                if name not in writers:
                    (self.path / name).unlink(missing_ok=True)
        self.print_written()
        return card
