"""The rules of one challenge under the evaluation contract, from its host's configuration."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import yaml
from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, model_validator

from headstart.contract.names import DATASET_PATTERN, TEXT_PATTERN
from headstart.contract.problems import ContractError
from headstart.contract.schema import AS_LIST, MAX_ENTRIES, MIN_ENTRIES, Document, Track, check_document
from headstart.contract.unique_keys import UniqueKeyLoader
from headstart.contract.untrusted_json import read_limited
from headstart.contract.versions import VERSIONS, Version
from headstart.output.errors import broken_yaml
from headstart.output.shipped_files import CONFIGS, find_file

CHALLENGES = CONFIGS / "challenge"
CHALLENGE_MAX_BYTES = 1_000_000


def _read_time(value: object) -> object:
    """Parse a time in ISO 8601, also in the form of YAML's own times."""
    if not isinstance(value, str):
        return value
    try:
        time = datetime.fromisoformat(value)
    except ValueError as error:
        raise ValueError("is not a time in ISO 8601, such as 2026-03-31T23:59:59-12:00") from error
    if time.tzinfo is None:
        raise ValueError("has no time zone; append one, such as Z or +01:00")
    return time


def _read_time_zone(value: object) -> ZoneInfo:
    try:
        return ZoneInfo(str(value))
    except (OSError, ValueError, KeyError) as error:  # the name of a folder, a path, an unknown name
        raise ValueError("is not the name of a time zone, such as UTC or Europe/Berlin") from error


_Line = Annotated[str, Field(min_length=1, max_length=256, pattern=TEXT_PATTERN)]
_Slug = Annotated[str, Field(min_length=1, max_length=128, pattern=DATASET_PATTERN)]
_Number = Annotated[int, Field(ge=MIN_ENTRIES, le=MAX_ENTRIES)]
_Limit = Annotated[int, Field(ge=1)]
_Time = Annotated[datetime | None, BeforeValidator(_read_time)]


class Count(Document):
    """The number of models or stimuli of a submission.

    Attributes:
        exactly: Exactly this many.
        least: This many or more.
        most: This many or fewer.
    """

    exactly: _Number | None = None
    least: _Number | None = None
    most: _Number | None = None

    @model_validator(mode="after")
    def _can_be_kept(self) -> Count:
        if self.exactly is not None and (self.least, self.most) != (None, None):
            raise ValueError("has exactly with least or most; give only one of them")
        if self.least is not None and self.most is not None and self.least > self.most:
            raise ValueError(f"has least {self.least} above most {self.most}")
        return self


class TeamRules(Document):
    """The rules of either team.

    Attributes:
        count: How many models or stimuli a submission has.
        submissions: Submissions that are allowed to a participant in total; None for any number.
        submissions_per_day: Submissions that are allowed to a participant on one day; None for any number.
    """

    count: Count = Count()
    submissions: _Limit | None = None
    submissions_per_day: _Limit | None = None


class RedRules(TeamRules):
    """The rules of the Red Team, which submits stimuli.

    Attributes:
        datasets: Data sets that stimuli may come from; None for all of the catalog.
    """

    datasets: Annotated[tuple[_Slug, ...], AS_LIST, Field(min_length=1)] | None = None


class ByTeam(Document):
    """The rules of the teams that a challenge has."""

    blue: TeamRules | None = None
    red: RedRules | None = None

    @model_validator(mode="after")
    def _has_one(self) -> ByTeam:
        if self.blue is None and self.red is None:
            raise ValueError("needs blue or red")
        return self


class Challenge(Document):
    """A challenge under the contract; its own rules hold beside the contract's and never loosen them.

    Attributes:
        name: What results call the challenge.
        title: What people call it.
        description: What it is about, in sentences.
        contract_versions: Versions of the contract that submissions may be written for.
        opens: First moment at which submissions are taken, with its time zone; None for none.
        deadline: Last moment at which submissions are taken, with its time zone; None for none.
        time_zone: Time zone whose midnight ends a day, by its name in the IANA data base.
        teams: Rules by team; one that is left out submits nothing.
    """

    name: _Slug
    title: _Line
    description: Annotated[str, Field(max_length=10_000)] = ""
    contract_versions: Annotated[
        tuple[Version, ...],
        AS_LIST,
        Field(min_length=1),
        AfterValidator(lambda names: tuple(version for version in VERSIONS if version in names)),
    ] = VERSIONS
    opens: _Time = None
    deadline: _Time = None
    time_zone: Annotated[ZoneInfo, BeforeValidator(_read_time_zone)] = ZoneInfo("UTC")
    teams: ByTeam

    @model_validator(mode="after")
    def _opens_before_it_ends(self) -> Challenge:
        if self.opens is not None and self.deadline is not None and self.opens >= self.deadline:
            raise ValueError(f"opens {self.opens.isoformat()}, not before its deadline {self.deadline.isoformat()}")
        return self

    @property
    def digest(self) -> str:
        """Hexadecimal SHA-256 of the rules; comments and the order of keys do not count."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    @property
    def scoring_digest(self) -> str:
        """Hexadecimal SHA-256 of the rules that a submission's validity and score depend on.

        Another title, deadline or quota does not change it.
        """
        team = {"count", "datasets"}
        kept: dict[str, Any] = {"contract_versions": True, "teams": {"blue": team, "red": team}}
        rules = self.model_dump(mode="json", include=kept)
        return hashlib.sha256(json.dumps(rules, sort_keys=True).encode()).hexdigest()

    def rules(self, team: Track) -> TeamRules | None:
        """Return the rules of a team; None where the challenge does not have it."""
        return self.teams.blue if team == "blue" else self.teams.red

    def is_over(self, now: datetime) -> bool:
        """Return whether the deadline has passed; the moment itself is still in time.

        Args:
            now: The time, with its time zone.
        """
        return self.deadline is not None and now > self.deadline

    def is_ahead(self, now: datetime) -> bool:
        """Return whether the challenge has not opened yet.

        Args:
            now: The time, with its time zone.
        """
        return self.opens is not None and now < self.opens


CHALLENGE: TypeAdapter[Challenge] = TypeAdapter(Challenge)


def challenge_path(name: str) -> Path:
    """Return the file of a challenge: a file of this path, else the project's challenge of this name.

    A path that does not exist in the working folder is looked up in the checkout.
    """
    path = find_file(name)
    return CHALLENGES / f"{name}.yaml" if not path.is_file() and name in shipped_challenges() else path


def shipped_challenges() -> list[str]:
    """Return the names of the project's challenges."""
    return sorted(path.stem for path in CHALLENGES.glob("*.yaml"))


def read_challenge(path: Path) -> Challenge:
    """Read the configuration of a challenge.

    Raises:
        ContractError: The file cannot be read, is no YAML, or breaks the form of a challenge; it holds all problems.
    """
    document = f"challenge {path}"
    if not path.exists():
        names = ", ".join(shipped_challenges())
        raise ContractError.of(document, f"there is no such file; name one, or a challenge of the project: {names}")
    content = read_limited(path, CHALLENGE_MAX_BYTES, document)
    try:
        # JSON has times as text, which is how the messages show them.
        parsed: Any = json.loads(json.dumps(yaml.load(content, UniqueKeyLoader), default=str))
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise ContractError.of(document, f"is not YAML: {broken_yaml(error)}") from error
    outcome = check_document(parsed, CHALLENGE, "a challenge")
    challenge, problems = outcome
    if challenge is None:
        raise ContractError(document, problems)
    return challenge
