"""The commands of organisers."""

from headstart.portal.commands.challenge import CHALLENGE_COMMANDS
from headstart.portal.commands.submissions import SUBMISSION_COMMANDS
from headstart.portal.commands.teams import TEAM_COMMANDS

# By the words of a command. Commands of two words are grouped by the first.
COMMANDS = {**TEAM_COMMANDS, **SUBMISSION_COMMANDS, **CHALLENGE_COMMANDS}
