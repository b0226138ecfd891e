"""Commands about submissions."""

from jsonargparse import Namespace

from headstart.output.errors import UserError
from headstart.portal.commands.command import Command, Desk
from headstart.portal.records.basis import find_held_back, read_bases
from headstart.portal.records.decisions import cancel, disqualify, reinstate
from headstart.portal.records.submissions import find_numbers
from headstart.portal.work.intake import score_again


def _rescore(desk: Desk, args: Namespace) -> str:
    """Score submissions again."""
    if sum([bool(args.numbers), args.failed, args.scored, args.held_back]) != 1:
        raise UserError("rescore: give numbers of submissions, or one of --failed, --scored and --held_back")
    numbers = args.numbers
    if args.failed:
        numbers = find_numbers(desk.database, "failed", "public", "held_out")
    elif args.scored:
        numbers = find_numbers(desk.database, "scored", "public")
    elif args.held_back:
        with desk.database.reading() as session:
            numbers = find_held_back(session, read_bases(session))

    count = score_again(desk.database, numbers, desk.phases)
    are = "submission is" if count == 1 else "submissions are"
    return f"{count} {are} in the queue again. Existing scores count until there are new ones."


def _disqualify(desk: Desk, args: Namespace) -> str:
    """Remove a submission from the leaderboard, which shows the reason."""
    return f"{disqualify(desk.database, args.number, args.reason)} is disqualified. The leaderboard shows the reason."


def _reinstate(desk: Desk, args: Namespace) -> str:
    """Restore a disqualified submission on the leaderboard."""
    return f"{reinstate(desk.database, args.number)} is no longer disqualified."


def _cancel(desk: Desk, args: Namespace) -> str:
    """Cancel the scoring of a submission that waits or runs."""
    name = cancel(desk.database, args.number, args.reason)
    return f"{name} was cancelled. Without a score, it does not count against quotas. `rescore` scores it after all."


def _switch(text: str) -> dict[str, str]:
    return {"action": "store_true", "help": text}


_NUMBER = {"number": {"type": int, "help": "Number of the submission."}}
_REASON = {"--reason": {"type": str, "required": True, "help": "A line of text that its team and others can read."}}
SUBMISSION_COMMANDS = {
    "rescore": Command(
        _rescore,
        {
            "numbers": {"type": int, "nargs": "*", "help": "Numbers of submissions."},
            "--failed": _switch("All submissions with a failed score, including held-out scores."),
            "--scored": _switch("All scored submissions."),
            "--held_back": _switch("All submissions that were scored with other documents or rules."),
        },
    ),
    "disqualify": Command(_disqualify, {**_NUMBER, **_REASON}),
    "reinstate": Command(_reinstate, _NUMBER),
    "cancel": Command(_cancel, {**_NUMBER, **_REASON}),
}
