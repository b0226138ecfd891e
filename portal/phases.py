"""The phases of a challenge: each has rules, a registry and a catalog, and a basis for each kind of its scores."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from headstart.contract.challenge import Challenge, challenge_path, read_challenge
from headstart.contract.documents import Catalog, Registry, catalog_path, read_catalog, read_registry, registry_path
from headstart.contract.schema import CONTRACT_VERSION
from headstart.contract.schema import Team as Track
from headstart.contract.submissions import KEYS
from headstart.output.errors import UserError
from headstart.portal.records.basis import (
    BASES,
    basis_key,
    documents_digest,
    find_held_back,
    make_basis,
    read_bases,
    unknown_rules,
)
from headstart.portal.records.log import log_event
from headstart.portal.records.tables import FactRow, Kind, ScoringRow, SubmissionRow
from headstart.portal.settings import PhaseSettings, Settings


@dataclass(frozen=True)
class Phase:
    """A phase of the challenge.

    Attributes:
        challenge: Its rules, whose name is the phase's.
        registry: Its models.
        catalog: Its stimuli.
        held_out_registry: Models that are not published; None without a held-out score of the Red Team.
        held_out_catalog: Stimuli that are not published; None without a held-out score of the Blue Team.
        extraction: The settings of the extraction that change scores.
    """

    challenge: Challenge
    registry: Registry
    catalog: Catalog
    held_out_registry: Registry | None
    held_out_catalog: Catalog | None
    extraction: dict[str, object]

    @property
    def name(self) -> str:
        """Its name."""
        return self.challenge.name

    def kinds(self, track: Track) -> list[Kind]:
        """Return the kinds of scores that submissions of a team of the contract have."""
        held_out = self.held_out_catalog if track == "blue" else self.held_out_registry
        return ["public"] if held_out is None else ["public", "held_out"]

    def documents(self, track: Track, kind: Kind) -> tuple[Registry, Catalog]:
        """Return the models and the stimuli of a score.

        A submission keeps the models or the stimuli that it names; only the others are held out.
        """
        if kind == "public":
            return self.registry, self.catalog
        if track == "blue":
            return self.registry, self.held_out_catalog or self.catalog
        return self.held_out_registry or self.registry, self.catalog

    def shown_bases(self, track: Track, is_over: bool) -> dict[str, str]:
        """Return the bases by kind of the scores of a team of the contract that are shown."""
        bases = self.bases()
        return {kind: bases[basis_key(self.name, track, kind)] for kind in self.kinds(track)[: 2 if is_over else 1]}

    def bases(self) -> dict[str, str]:
        """Return the basis of each score, by phase, team of the contract and kind."""
        rules, bases = self.challenge.scoring_digest, {}
        for track in KEYS:
            for kind in self.kinds(track):
                registry, catalog = self.documents(track, kind)
                documents = documents_digest(registry.sha256, catalog.sha256, self.extraction)
                bases[basis_key(self.name, track, kind)] = make_basis(documents, rules, CONTRACT_VERSION)
        return bases


def read_phases(settings: Settings) -> list[Phase]:
    """Read the documents of all phases.

    Raises:
        UserError: A document cannot be read, two phases have the same name, or one would never begin.
    """
    phases = [_read(settings, each) for each in settings.phases or [PhaseSettings(settings.challenge)]]
    names = [phase.name for phase in phases]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UserError(f"phases: two challenges have the name {twice[0]!r}; give each another `name`")
    for first, second in pairwise(phases):
        end, last = first.challenge.deadline, second.challenge.deadline
        # Nothing would ever be taken in for the second one.
        if end is None or (last is not None and last <= end):
            raise UserError(
                f"phases: {second.name!r} never begins; give {first.name!r} before it an earlier `deadline`"
            )
    return phases


def all_bases(phases: Sequence[Phase]) -> dict[str, str]:
    """Return the basis of each score of all phases, as of `Phase.bases`."""
    return {key: basis for phase in phases for key, basis in phase.bases().items()}


def _read(settings: Settings, each: PhaseSettings) -> Phase:
    held_out_registry = each.held_out_registry or settings.held_out_registry
    held_out_catalog = each.held_out_catalog or settings.held_out_catalog
    return Phase(
        read_challenge(challenge_path(each.challenge)),
        read_registry(registry_path(each.registry or settings.registry)),
        read_catalog(catalog_path(each.catalog or settings.catalog)),
        None if held_out_registry is None else read_registry(registry_path(held_out_registry)),
        None if held_out_catalog is None else read_catalog(catalog_path(held_out_catalog)),
        settings.extraction.score_settings,
    )


def current_phase(phases: Sequence[Phase], now: datetime) -> Phase:
    """Return the first phase that is not over, else the last one."""
    return next((phase for phase in phases if not phase.challenge.is_over(now)), phases[-1])


def record_bases(session: Session, phases: Sequence[Phase], now: datetime) -> int:
    """Record what scores are computed from at present, so that no process computes them from anything else.

    Scores of the first version of the portal are of these rules, if their documents are these. What changed since
    the last start is logged for everybody.

    Returns:
        The number of submissions that must be scored again.

    Raises:
        UserError: There are submissions of a phase that is not there any more: they would be on no leaderboard.
    """
    names = [phase.name for phase in phases]
    lost = session.scalar(select(SubmissionRow.phase).where(SubmissionRow.phase.not_in([*names, ""])).limit(1))
    if lost is not None:
        raise UserError(
            f"challenge: there are submissions of {lost!r}, but no phase with this `name`; restore the `name` "
            "(you may change the `title`), or use another database"
        )

    bases, before = all_bases(phases), read_bases(session)
    if not before:
        for key, basis in bases.items():
            _adopt(session, key, basis)
        session.execute(update(SubmissionRow).where(SubmissionRow.phase == "").values(phase=names[0]))
    session.merge(FactRow(name=BASES, value=json.dumps(bases)))

    held_back = len(find_held_back(session, bases))
    if held_back and before != bases:
        are = "submission was" if held_back == 1 else "submissions were"
        message = f"{held_back} {are} scored with other documents or rules than today's, and must be scored again."
        log_event(session, now, "documents changed", message, public=True)
    return held_back


def _adopt(session: Session, key: str, basis: str) -> None:
    phase, track, kind = key.split("/")
    numbers = select(SubmissionRow.id).where(SubmissionRow.phase.in_(["", phase]), SubmissionRow.track == track)
    held = (ScoringRow.submission_id.in_(numbers), ScoringRow.kind == kind, ScoringRow.basis == unknown_rules(basis))
    session.execute(update(ScoringRow).where(*held).values(basis=basis))
