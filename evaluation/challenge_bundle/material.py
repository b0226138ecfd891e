"""The material of every platform's bundle: the challenge's documents and files, the scoring program, the pages."""

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

from headstart.contract.challenge import BlueRules, Challenge, RedRules
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
# What is in a zip file, by name: bytes, a file on the disk, or another zip file.
Files: TypeAlias = Mapping[str, Union[bytes, Path, "Files"]]


@dataclass(frozen=True)
class Material:
    """The material of a bundle.

    Attributes:
        challenge: The challenge.
        rules: Its file.
        registry: The model registry.
        catalog: The stimuli catalog.
        wheel: The suite's wheel, by its file name.
        image: Container in which submissions are scored.
    """

    challenge: Challenge
    rules: Path
    registry: Registry
    catalog: Catalog
    wheel: dict[str, bytes]
    image: str

    @property
    def teams(self) -> dict[Track, BlueRules | RedRules]:
        """The rules of the teams that the challenge has."""
        of_teams = {team: self.challenge.rules(team) for team in get_args(Track)}
        return {team: rules for team, rules in of_teams.items() if rules is not None}

    @property
    def opens(self) -> str:
        """The time from which submissions are taken: the beginning of today where the rules name none."""
        return _in_utc(self.challenge.opens or datetime.now(UTC).replace(hour=0, minute=0, second=0))

    @property
    def deadline(self) -> str | None:
        """The time until which submissions are taken."""
        deadline = self.challenge.deadline
        return None if deadline is None else _in_utc(deadline)

    @property
    def program(self) -> Files:
        """The scoring program with its wheel."""
        return {PROGRAM: Path(scoring_program.__file__), **self.wheel}

    @cached_property
    def reference(self) -> Files:
        """All that a submission is scored with, in one folder.

        Raises:
            UserError: A model comes from code of the user's own, or a file of weights or of a stimulus is missing.
        """
        weights: dict[Path, str] = {}
        document = json.loads(self.registry.path.read_bytes())
        for entry in document if isinstance(document, list) else document["models"]:
            name = entry["model_name"]
            if entry["source"] == CUSTOM:
                raise UserError(f"registry: model {name!r} is of source custom, and code of your own is in no bundle")
            file = self.registry.weights_file(name)
            if file is not None and not file.is_file():
                raise UserError(f"registry: model {name!r}: weights: there is no file {str(file)!r}")
            if file is not None:
                entry["weights"] = weights.setdefault(file.resolve(), f"weights/{len(weights)}_{file.name}")

        # A registry without such files stays as it is, so that its digest is that of the host's.
        written = json.dumps(document, indent=1).encode() if weights else self.registry.path
        files: dict[str, bytes | Path] = dict(zip(DOCUMENTS, (self.rules, written, self.catalog.path), strict=True))
        files |= {name: file for file, name in weights.items()}
        for stimulus, path in zip(self.catalog.stimuli, locate_stimuli(self.catalog.stimuli), strict=True):
            files[f"datasets/{stimulus.dataset_name}/{stimulus.image_identifier}"] = path
        return {f"reference/{name}": content for name, content in files.items()}

    def pages(self, form: str) -> dict[str, bytes]:
        """Return the pages for participants in HTML, and a logo, which platforms ask for.

        Args:
            form: Content of the upload.
        """
        texts = {
            "title": self.challenge.title,
            "description": self.challenge.description,
            "rules": self.rules.read_text(encoding="utf-8"),
            "models": ", ".join(self.registry.entries),
            "form": form,
        }
        shown = {name: escape(text) for name, text in texts.items()}
        with io.BytesIO() as file:
            Image.new("RGB", (256, 256), "#0b57a4").save(file, "PNG")
            return {"logo.png": file.getvalue(), **{name: fill(name, shown) for name in PAGES}}


def fill(name: str, values: dict[str, str]) -> bytes:
    """Return a template with its placeholders filled in."""
    return Template((TEMPLATES / name).read_text(encoding="utf-8")).substitute(values).encode()


def read_yaml(name: str) -> dict[str, Any]:
    """Return what a template in YAML says."""
    document: dict[str, Any] = yaml.safe_load((TEMPLATES / name).read_text(encoding="utf-8"))
    return document


def yaml_bytes(document: dict[str, Any]) -> bytes:
    """Return a document as YAML."""
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True).encode()


def _in_utc(time: datetime) -> str:
    """Write a time in UTC as both platforms read it: they ignore a time zone that is written beside it."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def write_zip(target: Path | IO[bytes], files: Files) -> None:
    """Write a zip file; files are copied in pieces, so that data sets may be larger than the memory.

    Args:
        target: Where to, a path or a stream.
        files: Its content.
    """
    with ZipFile(target, "w") as archive:
        for name, content in sorted(files.items()):
            # Every member has the date with which ZIP's calendar begins.
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
