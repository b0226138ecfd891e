"""Invitations: links by each of which one person joins a team, or registers a new one."""

import csv
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from headstart.contract.names import LONGEST_NAME, canonical_name
from headstart.output.errors import UserError
from headstart.output.markup import csv_text, escape_cell
from headstart.portal.records.accounts import Keys, digest, free_email, make_account, make_team, new_secret
from headstart.portal.records.log import log_event
from headstart.portal.records.names import check_name, index_names
from headstart.portal.records.tables import AccountRow, InvitationRow, TeamRow

DURATION = timedelta(days=30)
COLUMNS = ("team", "member", "email")
MAX_SHOWN = 5


def invite(session: Session, now: datetime, team: TeamRow | None, by: str, name: str = "", email: str = "") -> str:
    """Invite a person.

    Args:
        session: Session of the portal's database.
        now: The time.
        team: The team to join; None to register a new one.
        by: Who invites, for the log.
        name: Name of the person, which the person can change.
        email: Address by which an organisation's sign-in knows the person.

    Returns:
        The code of the link, which is stored nowhere.

    Raises:
        UserError: The team is revoked, the name is not valid, or the address is none or another account's.
    """
    team_id, what = (None, "register a team") if team is None else (team.id, f"join {team.name}")
    if team is not None and team.revoked is not None:
        raise UserError(f"team: {team.name!r} is revoked; run `teams approve` first")
    if name:
        check_name(name, {}, "a member")
    code, address = new_secret(), free_email(session, email)
    row = InvitationRow(code_sha256=digest(code), team_id=team_id, name=name, email=address)
    row.created, row.expires = now, now + DURATION
    session.add(row)
    log_event(session, now, "invited", f"{by} invited {name or address or 'somebody'} to {what}.", team_id)
    return code


def find_invitation(session: Session, now: datetime, *, code: str = "", email: str = "") -> InvitationRow | None:
    """Return an open invitation by its code, or the latest one to a team by its address."""
    key = InvitationRow.code_sha256 == digest(code) if code else InvitationRow.email == email
    is_open = (key, InvitationRow.used.is_(None), InvitationRow.expires > now)
    query = select(InvitationRow).where(*is_open).order_by(InvitationRow.id.desc()).limit(1)
    if not code:
        query = query.where(InvitationRow.team_id.is_not(None))
    return session.scalar(query)


def use_invitation(
    session: Session, now: datetime, invitation: InvitationRow, name: str, team_name: str = ""
) -> tuple[AccountRow, Keys]:
    """Add the person who was invited.

    Args:
        session: Session of the portal's database.
        now: The time.
        invitation: The invitation, which is used up.
        name: Name of the person.
        team_name: Name of the new team, which organisers have to approve, if the invitation is to none.

    Raises:
        UserError: A name is not valid or looks like another one, or another request used the invitation meanwhile.
    """
    unused = (InvitationRow.id == invitation.id, InvitationRow.used.is_(None))
    if not session.execute(update(InvitationRow).where(*unused).values(used=now)).rowcount:  # type: ignore[attr-defined] # of an UPDATE
        raise UserError("invitation: it was used already; ask for another")
    team = invitation.team or make_team(session, now, team_name, is_approved=False)
    account, keys = make_account(session, now, name, team, invitation.email)
    log_event(session, now, "joined", f"{name} joined {team.name}.", team.id)
    return account, keys


def import_teams(session: Session, now: datetime, text: str, by: str, link: Callable[[str], str]) -> str:
    """Add the teams of a table that are new, and invite a person for each of its lines.

    Args:
        session: Session of the portal's database, whose changes must be dropped after an error.
        now: The time.
        text: CSV with a column `team`, and maybe `member` and `email`.
        by: Who does it, for the log.
        link: Makes the link of an invitation from its code.

    Returns:
        The table with a column `link` more.

    Raises:
        UserError: Lines are wrong; the first ones are named with their numbers.
    """
    known = {team.canonical: team for team in session.scalars(select(TeamRow))}
    taken, invited, rows, mistakes = index_names(each.name for each in known.values()), set[str](), [], list[str]()
    for line, (name, member, email) in _read_table(text):
        try:
            if email and email.lower() in invited:
                raise UserError(f"email: {email} is also in an earlier line")
            team = known.get(canonical_name(name[:LONGEST_NAME]))
            team = team or make_team(session, now, name, is_approved=True, taken=taken)
            known[team.canonical] = team
            invited.add(email.lower())
            cells = map(escape_cell, (name, member, email))
            rows.append([*cells, link(invite(session, now, team, by, member, email))])
        except UserError as error:
            mistakes.append(f"line {line}: {error}")
    if mistakes:
        raise UserError("; ".join([*mistakes[:MAX_SHOWN], f"{len(mistakes)} in all"]))
    return csv_text([*COLUMNS, "link"], rows)


def _read_table(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line that is not empty, and its team, member and address.

    Raises:
        UserError: The columns are others, a line has more cells than there are columns, or it is no CSV.
    """
    lines = text.removeprefix("\ufeff").splitlines(keepends=True)
    # Where the comma is that of decimals, spreadsheets write semicolons.
    reader = csv.reader(lines, delimiter=";" if ";" in "".join(lines[:1]) else ",")
    try:
        columns = [cell.strip().lower() for cell in next(reader, [])]
        if "team" not in columns or not set(columns) <= set(COLUMNS) or len(set(columns)) < len(columns):
            raise UserError(f"line 1: columns are {','.join(columns)!r}; give team, and optionally member and email")
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells[len(columns) :]):
                raise UserError(f"line {reader.line_num}: has more than {len(columns)} cells")
            if any(cells):
                given = dict(zip(columns, cells, strict=False))
                yield reader.line_num, [given.get(column, "") for column in COLUMNS]
    except csv.Error as error:
        raise UserError(f"line {reader.line_num}: is not valid CSV ({error})") from error
