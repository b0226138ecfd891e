"""Commands about teams."""

from jsonargparse import Namespace

from headstart.output.printable import printable
from headstart.output.tables import print_table
from headstart.portal.commands.command import Command, Desk
from headstart.portal.records.accounts import add_team, list_teams, renew_token, revoke_token


def _add(desk: Desk, args: Namespace) -> str:
    """Add a team and print its token."""
    token = add_team(desk.database, args.name)
    return f"{args.name} has the token {token}, which is not shown again."


def _renew(desk: Desk, args: Namespace) -> str:
    """Replace the token of a team."""
    token = renew_token(desk.database, args.name)
    return f"{args.name} has the token {token}, which is not shown again; the one before is not valid any more."


def _revoke(desk: Desk, args: Namespace) -> str:
    """End a team's token."""
    revoke_token(desk.database, args.name)
    return f"{args.name} can submit nothing more; its submissions and scores stay."


def _list(desk: Desk, args: Namespace) -> str:
    """Print all teams."""
    rows = [["team", "added", "token"]]
    for team in list_teams(desk.database):
        token = "valid" if team.revoked is None else f"revoked {team.revoked:%Y-%m-%d %H:%M}"
        rows.append([printable(team.name), f"{team.added:%Y-%m-%d %H:%M}", token])
    print_table("Teams (UTC)", rows)
    return ""


_NAME = {"name": {"type": str, "help": "Name of the team."}}
TEAM_COMMANDS = {
    "teams add": Command(_add, _NAME),
    "teams renew": Command(_renew, _NAME),
    "teams revoke": Command(_revoke, _NAME),
    "teams list": Command(_list, in_browser=False),
}
