"""The rules of one challenge under the evaluation contract, which its host writes into a configuration."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

import yaml
from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, model_validator

from headstart.contract.limited_yaml import parse_yaml
from headstart.contract.names import DATASET_PATTERN, MODEL_PATTERN, TEXT_PATTERN
from headstart.contract.problems import ContractError, Problem
from headstart.contract.schema import AS_LIST, MAX_ENTRIES, MIN_ENTRIES, Document, Team, check_document
from headstart.contract.untrusted_json import read_limited
from headstart.contract.versions import VERSIONS, Version
from headstart.output.errors import broken_yaml
from headstart.output.shipped_files import CONFIGS, find_file

CHALLENGES = CONFIGS / "challenge"
CHALLENGE_MAX_BYTES = 1_000_000


def _read_time(given: object) -> object:
    """Read a time in ISO 8601, which YAML's own form is read as, too."""
    if not isinstance(given, str):
        return given
    try:
        time = datetime.fromisoformat(given)
    except ValueError as error:
        raise ValueError("is no time in ISO 8601, such as 2026-03-31T23:59:59-12:00") from error
    if time.tzinfo is None:
        raise ValueError("has no time zone; put one behind it, such as Z or +01:00")
    return time


def _check_time_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (OSError, ValueError, KeyError) as error:  # a folder's name, a path, a name that there is not
        raise ValueError("is no name of a time zone, such as UTC or Europe/Berlin") from error
    return name


_Line = Annotated[str, Field(min_length=1, max_length=256, pattern=TEXT_PATTERN)]
_Slug = Annotated[str, Field(min_length=1, max_length=128, pattern=DATASET_PATTERN)]
_Number = Annotated[int, Field(ge=MIN_ENTRIES, le=MAX_ENTRIES)]
_Limit = Annotated[int, Field(ge=1)]
# Of models, as their names are, so that a bracket, which would be a choice of letters, is refused.
_Pattern = Annotated[str, Field(min_length=1, max_length=256, pattern=MODEL_PATTERN)]


class Count(Document):
    """How many models or stimuli a submission has."""

    exactly: Annotated[_Number | None, Field(description="So many, and no other number.")] = None
    least: Annotated[_Number | None, Field(description="So many or more.")] = None
    most: Annotated[_Number | None, Field(description="So many or fewer.")] = None

    @model_validator(mode="after")
    def _can_be_kept(self) -> Count:
        if self.exactly is not None and (self.least, self.most) != (None, None):
            raise ValueError("has exactly beside least or most; give the one or the others")
        if self.least is not None and self.most is not None and self.least > self.most:
            raise ValueError(f"has least {self.least} above most {self.most}")
        return self


class TeamRules(Document):
    """What holds for the submissions of either team."""

    count: Annotated[Count, Field(description="How many models or stimuli a submission has.")] = Count()
    submissions: Annotated[
        _Limit | None, Field(description="Submissions that a participant may hand in altogether; null for any number.")
    ] = None
    submissions_per_day: Annotated[
        _Limit | None, Field(description="Submissions that a participant may hand in on one day; null for any number.")
    ] = None
    standing: Annotated[
        Literal["best", "last"], Field(description="Which of a participant's scores stands on the leaderboard.")
    ] = "best"


class BlueRules(TeamRules):
    """What holds for submissions of models."""

    families: Annotated[
        dict[_Line, Annotated[tuple[_Pattern, ...], AS_LIST, Field(min_length=1)]],
        Field(
            default_factory=dict,
            description="Patterns of model names, with * and ?, by the name of the family that they tell.",
        ),
    ]
    most_per_family: Annotated[
        _Limit | None, Field(description="Models of one family that a submission may have; null for any number.")
    ] = None
    unmixed_families: Annotated[
        tuple[Annotated[tuple[_Line, ...], AS_LIST, Field(min_length=2)], ...],
        AS_LIST,
        Field(description="Lists of families, of each of which a submission may have models of one family alone."),
    ] = ()

    @model_validator(mode="after")
    def _families_are_known_and_used(self) -> BlueRules:
        unknown = sorted({name for group in self.unmixed_families for name in group} - set(self.families))
        if unknown:
            raise ValueError(f"unmixed_families names {', '.join(unknown)}, and families does not")
        if any(len(set(group)) < len(group) for group in self.unmixed_families):
            raise ValueError("unmixed_families names a family twice in one list")
        if self.most_per_family is not None and not self.families:
            raise ValueError("most_per_family needs families")
        if self.families and self.most_per_family is None and not self.unmixed_families:
            raise ValueError("families needs most_per_family or unmixed_families, which say what holds for them")
        return self


class RedRules(TeamRules):
    """What holds for submissions of stimuli."""

    datasets: Annotated[
        Annotated[tuple[_Slug, ...], AS_LIST, Field(min_length=1)] | None,
        Field(description="Data sets that stimuli may come from; null for all of the catalog."),
    ] = None


class ByTeam(Document):
    """The rules of the teams that a challenge has."""

    blue: BlueRules | None = None
    red: RedRules | None = None

    @model_validator(mode="after")
    def _has_one(self) -> ByTeam:
        if self.blue is None and self.red is None:
            raise ValueError("needs blue or red")
        return self


class Challenge(Document):
    """A challenge under the contract, whose own rules hold beside it; they never loosen it."""

    name: Annotated[_Slug, Field(description="What results call the challenge.")]
    title: Annotated[_Line, Field(description="What people call it.")]
    description: Annotated[str, Field(max_length=10_000, description="What it is about, in sentences.")] = ""
    contract_versions: Annotated[
        tuple[Version, ...],
        AS_LIST,
        Field(min_length=1, description="Versions of the contract that submissions may be written for."),
        AfterValidator(lambda given: tuple(version for version in VERSIONS if version in given)),
    ] = VERSIONS
    deadline: Annotated[
        datetime | None,
        BeforeValidator(_read_time),
        Field(description="Last moment at which submissions are taken, with its time zone; null for none."),
    ] = None
    time_zone: Annotated[
        str,
        BeforeValidator(lambda given: _check_time_zone(given) if isinstance(given, str) else given),
        Field(description="Time zone whose midnight ends a day, by its name in the IANA data base."),
    ] = "UTC"
    teams: Annotated[ByTeam, Field(description="Rules by team; one that is left out hands nothing in.")]

    @property
    def digest(self) -> str:
        """SHA-256 of what the configuration says, hexadecimal; comments and the order of keys do not count."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    def rules(self, team: Team) -> BlueRules | RedRules | None:
        """Give the rules of a team; None where the challenge does not have it."""
        return self.teams.blue if team == "blue" else self.teams.red

    def is_over(self, now: datetime) -> bool:
        """Tell whether the deadline has passed; the moment itself is still in time.

        Args:
            now: The time, with its time zone.
        """
        return self.deadline is not None and now > self.deadline


CHALLENGE: TypeAdapter[Challenge] = TypeAdapter(Challenge)


def challenge_path(chosen: str) -> Path:
    """Give the file of a challenge: one of this path, else the one of this name that comes with the project.

    A path that leads nowhere from the working folder, but somewhere from the checkout, is taken from there.

    Raises:
        ContractError: Nothing is named.
    """
    if not chosen:
        raise ContractError("challenge", [Problem("", "", f"no file is given; {_choices()}")])
    path = find_file(chosen)
    return CHALLENGES / f"{chosen}.yaml" if not path.is_file() and chosen in shipped_challenges() else path


def shipped_challenges() -> list[str]:
    """Name the challenges that come with the project."""
    return sorted(path.stem for path in CHALLENGES.glob("*.yaml"))


def _choices() -> str:
    return f"name one, or a challenge of the project: {', '.join(shipped_challenges())}"


def read_challenge(path: Path) -> Challenge:
    """Read the configuration of a challenge.

    Raises:
        ContractError: The file cannot be read, is no YAML, or says what no challenge has; all problems are named.
    """
    document = f"challenge {path}"
    if not path.exists():
        raise ContractError(document, [Problem("", "", f"there is no such file; {_choices()}")])
    content = read_limited(path, CHALLENGE_MAX_BYTES, document)
    try:
        # As JSON, of which the messages are made: times become text.
        parsed: Any = json.loads(json.dumps(parse_yaml(content), default=str))
    except (yaml.YAMLError, ValueError, TypeError) as error:
        raise ContractError(document, [Problem("", "", f"is not YAML: {broken_yaml(error)}")]) from error
    outcome = check_document(parsed, CHALLENGE, "a challenge")
    challenge, problems = outcome
    if challenge is None:
        raise ContractError(document, problems)
    return challenge


def find_untimely(challenge: Challenge, team: Team, earlier: Sequence[datetime], now: datetime) -> list[Problem]:
    """Find why a participant's submission comes at a wrong time: after the deadline, or beyond a quota.

    Args:
        challenge: The challenge.
        team: The team that the submission is for.
        earlier: When the participant handed in the earlier submissions for that team that count, in any order.
        now: When this one is handed in.

    Returns:
        The problems, of the whole document; times have their time zone, the challenge's.
    """
    rules = challenge.rules(team)
    if rules is None:
        return [untaken(challenge, team, "")]
    zone = ZoneInfo(challenge.time_zone)
    problems, there = [], now.astimezone(zone)
    if challenge.deadline is not None and challenge.is_over(now):
        rule = f"the deadline was {challenge.deadline.astimezone(zone).isoformat()}, and it is {there.isoformat()}"
        problems.append(Problem("", "", rule))
    if rules.submissions is not None and len(earlier) >= rules.submissions:
        problems.append(Problem("", "", f"{rules.submissions} submissions may be handed in, and all of them are"))
    if rules.submissions_per_day is not None and count_on_day(challenge, earlier, now) >= rules.submissions_per_day:
        rule = (
            f"{rules.submissions_per_day} submissions may be handed in on one day, and all of {there.date()} "
            f"({challenge.time_zone}) are; the next day begins at midnight"
        )
        problems.append(Problem("", "", rule))
    return problems


def count_on_day(challenge: Challenge, times: Sequence[datetime], now: datetime) -> int:
    """Count the times that are on the same day as another, which begins at midnight in the challenge's time zone."""
    zone = ZoneInfo(challenge.time_zone)
    return sum(time.astimezone(zone).date() == now.astimezone(zone).date() for time in times)


def choose_standing(rules: TeamRules, scores: Sequence[float]) -> int | None:
    """Choose the score of a participant that stands on the leaderboard.

    Args:
        rules: The team's rules.
        scores: The participant's scores for that team, in the order in which they were handed in; higher is better.

    Returns:
        Its place among them, the earliest of equal ones; None where there is no score.
    """
    if not scores:
        return None
    return len(scores) - 1 if rules.standing == "last" else max(range(len(scores)), key=scores.__getitem__)


def untaken(challenge: Challenge, team: Team, pointer: str) -> Problem:
    """Say that a challenge does not have a team."""
    return Problem(pointer, "", f"the challenge {challenge.name!r} takes no submissions of the {team.title()} Team")
