"""Commands about teams, their members, and organisers."""

from functools import partial
from typing import Any

from jsonargparse import Namespace

from headstart.output.errors import UserError, explain_write_errors, prefix_errors
from headstart.output.files import output_file, replacing, restored_on_failure
from headstart.output.printable import printable
from headstart.output.tables import print_table
from headstart.portal.commands.command import Command, Desk
from headstart.portal.records import accounts, invitations
from headstart.portal.records.listing import list_all_teams
from headstart.portal.records.log import log_event
from headstart.portal.settings import read_file


def _add(desk: Desk, args: Namespace) -> str:
    """Add a team with one member, and print the member's token and recovery code."""
    return _tell(args.name, accounts.create_team(desk.database, args.name))


def _import(desk: Desk, args: Namespace) -> str:
    """Add the teams of a CSV file, and write a file of invitations to send."""
    text = read_file("file", args.file)
    target = output_file("output", args.output)
    if target.exists():
        raise UserError(f"output: {args.output!r} exists and may hold earlier invitations; choose another file")

    # The file is removed again if the invitations in it cannot be stored.
    with restored_on_failure([target]), desk.database.writing() as session:
        with prefix_errors("file"):
            by, link = desk.organiser, partial(_link, desk)
            table = invitations.import_teams(session, desk.now, text, by, link)
        with explain_write_errors(f"output: {args.output!r}", "choose another file"), replacing(target) as file:
            file.chmod(0o600)
            file.write_text(table, encoding="utf-8")
    count, start = table.count("\n") - 1, _link(desk, "")
    return f"{count} invitations are in {args.output}. Send them; each link works once and begins with {start}."


def _invite(desk: Desk, args: Namespace) -> str:
    """Create a link to join a team, or to register a new team if none is named."""
    with desk.database.writing() as session:
        team = accounts.find_team(session, args.name) if args.name else None
        code = invitations.invite(session, desk.now, team, desk.organiser, email=args.email)
    return f"Send this link, which works once within {invitations.DURATION.days} days: {_link(desk, code)}"


def _approve(desk: Desk, args: Namespace) -> str:
    """Approve a team that registered itself, or restore a revoked team."""
    with desk.database.writing() as session:
        team = accounts.find_team(session, args.name)
        team.approved, team.revoked = team.approved or desk.now, None
        log_event(session, desk.now, "team approved", f"The team {team.name} takes part.", team.id)
    return f"{team.name} may submit."


def _renew(desk: Desk, args: Namespace) -> str:
    """Replace a member's token and recovery code, and restore member and team if they were revoked."""
    with desk.database.writing() as session:
        team = accounts.find_team(session, args.name)
        account = accounts.find_person(session, team, args.member)
        team.revoked = None
        keys = accounts.renew_keys(session, desk.now, account, desk.organiser)
    return f"{_tell(account.name, keys)} The old ones no longer work."


def _revoke(desk: Desk, args: Namespace) -> str:
    """Revoke a team, or one of its members."""
    with desk.database.writing() as session:
        team = accounts.find_team(session, args.name)
        if args.member:
            account = accounts.find_person(session, team, args.member)
            accounts.revoke_account(session, desk.now, account, desk.organiser)
            return f"{account.name} was removed from {team.name}."
        accounts.revoke_team(session, desk.now, team)
    return f"{team.name} can no longer submit. Its submissions and scores stay."


def _list(desk: Desk, args: Namespace) -> str:
    """List all teams."""
    rows = [["team", "added", "state", "members"]]
    with desk.database.reading() as session:
        for each in list_all_teams(session):
            members = ", ".join(map(printable, each.members))
            rows.append([printable(each.team.name), f"{each.team.added:%Y-%m-%d %H:%M}", each.state, members])
    print_table("Teams (UTC)", rows)
    return ""


def _add_organiser(desk: Desk, args: Namespace) -> str:
    """Add an organiser, and print the organiser's token and recovery code."""
    with desk.database.writing() as session:
        _, keys = accounts.make_account(session, desk.now, args.name, None, args.email)
    return _tell(args.name, keys)


def _revoke_organiser(desk: Desk, args: Namespace) -> str:
    """Revoke an organiser."""
    with desk.database.writing() as session:
        account = accounts.find_person(session, None, args.name)
        accounts.revoke_account(session, desk.now, account, desk.organiser)
    return f"{account.name} is no longer an organiser."


def _list_organisers(desk: Desk, args: Namespace) -> str:
    """List all organisers."""
    with desk.database.reading() as session:
        people = accounts.list_members(session, None)
    print_table("Organisers", [["name", "e-mail"], *([printable(each.name), each.email or ""] for each in people)])
    return ""


def _tell(name: str, keys: accounts.Keys) -> str:
    code = f"the recovery code {keys.recovery} in case it is lost"
    return f"{name} has the token {keys.token}, and {code}. Neither is shown again."


def _link(desk: Desk, code: str) -> str:
    return f"{desk.settings.address}/join/{code}"


def _text(meaning: str, **more: Any) -> dict[str, Any]:
    return {"type": str, "help": meaning, **more}


_NAME = {"name": _text("Name of the team.")}
_MEMBER = {"--member": _text("Name of one of its members.")}
_PERSON = {"name": _text("Name of the organiser.")}
_EMAIL = {"--email": _text("E-mail address of the person at the organisation's sign-in.")}
_FILES = {
    "file": _text("CSV file with a column team, and optionally member and email."),
    "--output": _text("File of invitations to write.", required=True),
}
TEAM_COMMANDS = {
    "teams add": Command(_add, _NAME),
    "teams import": Command(_import, _FILES),
    "teams invite": Command(_invite, {"name": _text("Name of the team; omit it for a new team.", nargs="?"), **_EMAIL}),
    "teams approve": Command(_approve, _NAME),
    "teams renew": Command(_renew, {**_NAME, **_MEMBER}),
    "teams revoke": Command(_revoke, {**_NAME, **_MEMBER}),
    "teams list": Command(_list, in_browser=False),
    "organisers add": Command(_add_organiser, {**_PERSON, **_EMAIL}),
    "organisers revoke": Command(_revoke_organiser, _PERSON),
    "organisers list": Command(_list_organisers, in_browser=False),
}
