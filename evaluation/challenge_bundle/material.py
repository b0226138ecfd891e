"""The content of a challenge bundle on every platform: documents, files, the scoring program and HTML pages."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from html import escape
from pathlib import Path
from string import Template
from typing import IO, Any, TypeAlias, Union, get_args
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import yaml
from PIL import Image

from headstart.contract.challenge import Challenge, TeamRules
from headstart.contract.documents import Catalog, Registry
from headstart.contract.schema import Track
from headstart.contract.stimulus_files import locate_stimuli
from headstart.evaluation.challenge_bundle import scoring_program
from headstart.modules.networks.spec import CUSTOM
from headstart.output.errors import UserError

PROGRAM = "scoring_program.py"
DOCUMENTS = ("rules.yaml", "registry.json", "catalog.jsonl")
PAGES = ("overview.html", "evaluation.html", "submission.html", "terms.html")
TEMPLATES = Path(__file__).parent / "templates"
# Content of a zip file by member name: bytes, a file on the disk, or the content of a nested zip file.
Files: TypeAlias = Mapping[str, Union[bytes, Path, "Files"]]


@dataclass(frozen=True)
class Material:
    """What a bundle is made from.

    Attributes:
        challenge: The challenge.
        rules: The file that defines the challenge.
        registry: The model registry.
        catalog: The stimuli catalog.
        wheel: Content of the suite's wheel by its file name.
        image: Container image in which submissions are scored.
    """

    challenge: Challenge
    rules: Path
    registry: Registry
    catalog: Catalog
    wheel: dict[str, bytes]
    image: str

    @property
    def teams(self) -> dict[Track, TeamRules]:
        """The rules of each team that takes part in the challenge."""
        all_rules = {team: self.challenge.rules(team) for team in get_args(Track)}
        return {team: rules for team, rules in all_rules.items() if rules is not None}

    @property
    def opens(self) -> str:
        """The time from which submissions are accepted; the start of today in UTC if the rules set none."""
        return _in_utc(self.challenge.opens or datetime.now(UTC).replace(hour=0, minute=0, second=0))

    @property
    def deadline(self) -> str | None:
        """The time until which submissions are accepted; None if the rules set none."""
        deadline = self.challenge.deadline
        return None if deadline is None else _in_utc(deadline)

    @property
    def program(self) -> Files:
        """The scoring program and the suite's wheel."""
        return {PROGRAM: Path(scoring_program.__file__), **self.wheel}

    @cached_property
    def reference(self) -> Files:
        """The folder `reference`, which holds everything that scoring needs: documents, weights and stimuli.

        Raises:
            UserError: A model has the source `custom`, or a weights file or a stimulus file is missing.
        """
        bundled: dict[Path, str] = {}
        document = json.loads(self.registry.path.read_bytes())
        for entry in document if isinstance(document, list) else document["models"]:
            name = entry["model_name"]
            if entry["source"] == CUSTOM:
                raise UserError(f"registry: model {name!r} is of source custom, and code of your own is in no bundle")
            file = self.registry.weights_file(name)
            if file is not None and not file.is_file():
                raise UserError(f"registry: model {name!r}: weights: there is no file {str(file)!r}")
            if file is not None:
                entry["weights"] = bundled.setdefault(file.resolve(), f"weights/{len(bundled)}_{file.name}")

        # A registry without weights files is copied unchanged, so that its digest stays the same.
        registry = json.dumps(document, indent=1).encode() if bundled else self.registry.path
        files: dict[str, bytes | Path] = dict(zip(DOCUMENTS, (self.rules, registry, self.catalog.path), strict=True))
        files |= {name: file for file, name in bundled.items()}
        for stimulus, path in zip(self.catalog.stimuli, locate_stimuli(self.catalog.stimuli), strict=True):
            files[f"datasets/{stimulus.dataset_name}/{stimulus.image_identifier}"] = path
        return {f"reference/{name}": content for name, content in files.items()}

    def pages(self, form: str) -> dict[str, bytes]:
        """Return the HTML pages for participants, and the logo that platforms require.

        Args:
            form: What participants upload, such as "a JSON document".
        """
        texts = {
            "title": self.challenge.title,
            "description": self.challenge.description,
            "rules": self.rules.read_text(encoding="utf-8"),
            "models": ", ".join(self.registry.entries),
            "form": form,
        }
        escaped = {name: escape(text) for name, text in texts.items()}
        with io.BytesIO() as file:
            Image.new("RGB", (256, 256), "#0b57a4").save(file, "PNG")
            return {"logo.png": file.getvalue(), **{name: fill(name, escaped) for name in PAGES}}


def fill(name: str, values: dict[str, str]) -> bytes:
    """Fill in the placeholders of a template."""
    return Template((TEMPLATES / name).read_text(encoding="utf-8")).substitute(values).encode()


def read_yaml(name: str) -> dict[str, Any]:
    """Return the content of a YAML template."""
    document: dict[str, Any] = yaml.safe_load((TEMPLATES / name).read_text(encoding="utf-8"))
    return document


def yaml_bytes(document: dict[str, Any]) -> bytes:
    """Return a document as YAML."""
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True).encode()


def _in_utc(time: datetime) -> str:
    """Return a time in UTC as text without an offset, because both platforms ignore offsets."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def write_zip(target: Path | IO[bytes], files: Files) -> None:
    """Write a zip file. Files are copied in chunks, because data sets may be larger than the memory.

    Args:
        target: Path or stream of the zip file.
        files: Content of the zip file.
    """
    with ZipFile(target, "w") as archive:
        for name, content in sorted(files.items()):
            # `ZipInfo` sets a constant date, so that equal content gives an equal zip file.
            member = ZipInfo(name)
            member.compress_type, member.external_attr = ZIP_DEFLATED, 0o644 << 16
            with archive.open(member, "w", force_zip64=not isinstance(content, bytes)) as file:
                if isinstance(content, bytes):
                    file.write(content)
                elif isinstance(content, Path):
                    with content.open("rb") as source:
                        shutil.copyfileobj(source, file)
                else:
                    write_zip(file, content)
