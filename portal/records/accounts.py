"""People and their teams: what they show to be let in, which they renew and others revoke.

A token is 256 random bits, so its plain SHA-256 can be stored: salts and slow digests protect passwords of few bits.
"""

import hashlib
import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from headstart.contract.names import canonical_name
from headstart.output.errors import UserError
from headstart.portal.records.database import Database
from headstart.portal.records.log import log_event
from headstart.portal.records.names import Look, check_name, index_names
from headstart.portal.records.tables import AccountRow, InvitationRow, SessionRow, TeamRow

TOKEN_BYTES = 32
MAX_EMAIL_LENGTH = 254
# The bytes of "Name": other locks of PostgreSQL have other numbers.
_LOCK = 0x4E61_6D65


class Keys(NamedTuple):
    """What lets a person in: a token, and a recovery code for when it is lost. Only their digests are stored."""

    token: str
    recovery: str


def new_secret() -> str:
    """Return a new token, recovery code, cookie or code of an invitation."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def digest(secret: str) -> str:
    """Return what is stored of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def create_team(database: Database, name: str) -> Keys:
    """Add a team with one member, who has the team's name.

    Raises:
        UserError: The name is not valid, or another team has it.
    """
    now = datetime.now(UTC)
    with database.writing() as session:
        return make_account(session, now, name, make_team(session, now, name, is_approved=True))[1]


def add_team(database: Database, name: str) -> str:
    """Add a team as `create_team` does, and return its member's token only."""
    return create_team(database, name).token


def make_team(
    session: Session, now: datetime, name: str, is_approved: bool, taken: dict[Look, str] | None = None
) -> TeamRow:
    """Add a team without members.

    Args:
        session: Session of the portal's database.
        now: The time.
        name: Its name.
        is_approved: Whether it may submit at once, without the organisers' approval.
        taken: The names of all teams, as of `index_names`, to which this one is added; by default they are read.

    Raises:
        UserError: The name is not valid, or looks like another team's.
    """
    _lock_names(session)
    taken = index_names(session.scalars(select(TeamRow.name))) if taken is None else taken
    check_name(name, taken, "a team")
    taken.update(index_names([name]))
    team = TeamRow(name=name, canonical=canonical_name(name), added=now, approved=now if is_approved else None)
    session.add(team)
    session.flush()
    state = "takes part" if is_approved else "waits for the organisers' approval"
    log_event(session, now, "team added", f"The team {name} {state}.", team.id)
    return team


def make_account(
    session: Session, now: datetime, name: str, team: TeamRow | None, email: str | None = None
) -> tuple[AccountRow, Keys]:
    """Add a person.

    Args:
        session: Session of the portal's database.
        now: The time.
        name: Name of the person.
        team: The team that the person is a member of; None for an organiser.
        email: Address by which an organisation's sign-in knows the person.

    Raises:
        UserError: The name is not valid or looks like that of a team mate, or the address is none or another account's.
    """
    _lock_names(session)
    team_id = None if team is None else team.id
    mates = select(AccountRow.name).where(AccountRow.team_id == team_id, AccountRow.revoked.is_(None))
    check_name(name, index_names(session.scalars(mates)), "a member" if team else "an organiser")
    keys, address = Keys(new_secret(), new_secret()), free_email(session, email)
    account = AccountRow(team_id=team_id, name=name, email=address, is_organiser=team is None, added=now)
    account.token_sha256, account.recovery_sha256 = map(digest, keys)
    session.add(account)
    session.flush()
    return account, keys


def _lock_names(session: Session) -> None:
    """Have others wait who add a name, until this one can be compared; SQLite has one writer in any case."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(select(func.pg_advisory_xact_lock(_LOCK)))


def renew_keys(session: Session, now: datetime, account: AccountRow, by: str) -> Keys:
    """Replace the token and the recovery code of a person, also a revoked one, and end the person's sessions."""
    keys = Keys(new_secret(), new_secret())
    account.token_sha256, account.recovery_sha256 = map(digest, keys)
    account.revoked = None
    end_sessions(session, account.id)
    log_event(session, now, "token renewed", f"{account.name} has another token, by {by}.", account.team_id)
    return keys


def recover(session: Session, now: datetime, code: str) -> tuple[AccountRow, Keys] | None:
    """Replace the keys of the person whose recovery code is given; None for an unknown or used one."""
    query = select(AccountRow).where(AccountRow.recovery_sha256 == digest(code))
    account = if_valid(session.scalar(query.with_for_update(of=AccountRow)))
    return None if account is None else (account, renew_keys(session, now, account, "the recovery code"))


def revoke_account(session: Session, now: datetime, account: AccountRow, by: str) -> None:
    """Shut a person out at once, who may hold links to the team; submissions stay, and the address is free again."""
    account.revoked, account.email = account.revoked or now, None
    end_sessions(session, account.id)
    if account.team_id is not None:
        _end_invitations(session, now, account.team_id)
    log_event(session, now, "account revoked", f"{account.name} was shut out by {by}.", account.team_id)


def revoke_team(session: Session, now: datetime, team: TeamRow) -> None:
    """Shut a team out at once; its submissions and scores stay."""
    team.revoked = team.revoked or now
    members = select(AccountRow.id).where(AccountRow.team_id == team.id)
    session.execute(delete(SessionRow).where(SessionRow.account_id.in_(members)))
    _end_invitations(session, now, team.id)
    log_event(session, now, "team revoked", f"The team {team.name} may submit nothing more.", team.id)


def end_sessions(session: Session, account_id: int) -> None:
    """Log a person out of all browsers."""
    session.execute(delete(SessionRow).where(SessionRow.account_id == account_id))


def _end_invitations(session: Session, now: datetime, team_id: int) -> None:
    is_open = (InvitationRow.team_id == team_id, InvitationRow.used.is_(None))
    session.execute(update(InvitationRow).where(*is_open).values(used=now))


def list_members(session: Session, team_id: int | None) -> Sequence[AccountRow]:
    """Return the members of a team, or the organisers without a team, who are not shut out."""
    query = select(AccountRow).where(AccountRow.team_id == team_id, AccountRow.revoked.is_(None))
    return session.scalars(query.order_by(AccountRow.id)).all()


def find_account(database: Database, token: str) -> AccountRow | None:
    """Return the account of a token, with its team; None for an unknown or revoked one."""
    with database.reading() as session:
        # The query compares digests, so its time reveals nothing of the token.
        return if_valid(session.scalar(select(AccountRow).where(AccountRow.token_sha256 == digest(token))))


def if_valid(account: AccountRow | None) -> AccountRow | None:
    """Return an account, but None where it or its team is revoked."""
    if account is None or account.revoked is not None:
        return None
    return account if account.team is None or account.team.revoked is None else None


def find_team(session: Session, name: str) -> TeamRow:
    """Return the team of a name; a UserError if there is none."""
    query = select(TeamRow).where(TeamRow.canonical == canonical_name(name))
    # Bytes of the command line that are no text cannot be part of a query.
    row = session.scalar(query) if name.isprintable() else None
    if row is None:
        raise UserError(f"name: there is no team {name!r}; `teams list` names all")
    return row


def find_person(session: Session, team: TeamRow | None, name: str | None) -> AccountRow:
    """Return a person by name, rather one who is not shut out.

    Args:
        session: Session of the portal's database.
        team: The person's team; None for an organiser.
        name: The name; None for the only member of a team.

    Raises:
        UserError: There is no such person, or there are several.
    """
    query = select(AccountRow).where(AccountRow.team_id == (team and team.id))
    people = session.scalars(query.order_by(AccountRow.revoked.is_(None), AccountRow.id).with_for_update(of=AccountRow))
    found = [each for each in people if name is None or canonical_name(each.name) == canonical_name(name)]
    members = [each.name for each in found if each.revoked is None]
    if name is None and len(members) > 1:
        raise UserError(f"member: {', '.join(members)} are members; name one with --member")
    if not found:
        argument, command = ("member", "teams list") if team else ("name", "organisers list")
        raise UserError(f"{argument}: there is no person {name!r}; `{command}` names all")
    return found[-1]


def free_email(session: Session, email: str | None) -> str | None:
    """Return an address in the form in which addresses are compared; None for none.

    Raises:
        UserError: It is no address, or that of an account.
    """
    if not email:
        return None
    address = email.strip().lower()
    if not (re.fullmatch(r"[^@]+@[^@]+", address) and address.isprintable() and len(address) <= MAX_EMAIL_LENGTH):
        raise UserError(f"email: {email!r} is not an address; give one like name@example.org")
    if session.scalar(select(AccountRow.id).where(AccountRow.email == address)):
        raise UserError(f"email: {address} belongs to an account, whose holder logs in or uses the recovery code")
    return address
