"""Forms of the organisers' commands, made of the arguments that the command line has."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from jsonargparse import Namespace

from headstart.output.errors import UserError
from headstart.portal.commands.command import Desk, give
from headstart.portal.commands.table import COMMANDS

# Arguments that name files on the command line: the one's text is pasted, the other's is shown.
PASTED, SHOWN = "file", "output"
FORMS = {words: command for words, command in COMMANDS.items() if command.in_browser}
# Commands about one team or submission, and the argument that names it.
TEAM_FORMS = dict.fromkeys(("teams invite", "teams approve", "teams renew", "teams revoke"), "name")
SUBMISSION_FORMS = {"rescore": "numbers", "disqualify": "number", "reinstate": "number", "cancel": "number"}


@dataclass(frozen=True)
class Field:
    """A field of a form.

    Attributes:
        name: Name of the argument.
        options: argparse's options of it.
        is_required: Whether it must be filled in.
        value: What stands in it.
    """

    name: str
    options: Mapping[str, Any]
    is_required: bool
    value: str

    @property
    def kind(self) -> str:
        """`switch`, `lines` or `line`."""
        return "switch" if "action" in self.options else "lines" if self.name == PASTED else "line"

    def read(self) -> Any:  # noqa: ANN401 - any argument
        """Return the value of the argument.

        Raises:
            UserError: Nothing is there, or something else.
        """
        if self.kind == "switch":
            return bool(self.value)
        if not self.value and self.is_required:
            raise UserError(f"{self.name}: is missing; {self.options['help']}")
        kind = self.options["type"]
        try:
            if self.options.get("nargs") == "*":
                return [kind(text) for text in self.value.replace(",", " ").split()]
            return kind(self.value) if self.value else self.options.get("default")
        except ValueError as error:
            raise UserError(f"{self.name}: {self.value!r} is not valid; {self.options['help']}") from error


def make_fields(words: str, values: Mapping[str, str]) -> list[Field]:
    """Return the fields of a command's form.

    Args:
        words: The words of the command.
        values: What stands in the fields, by name.
    """
    fields = []
    for argument, options in FORMS[words].arguments.items():
        name = argument.lstrip("-")
        is_required = options.get("required", name == argument and "nargs" not in options)
        if name != SHOWN:
            fields.append(Field(name, options, is_required, values.get(name, "").strip()))
    return fields


def run_form(words: str, desk: Desk, fields: list[Field]) -> str:
    """Run the command of a form, and return its sentence, with the text of the file that it writes.

    Args:
        words: The words of the command.
        desk: What it works on.
        fields: Its fields.

    Raises:
        UserError: A field is wrong, or the command says why it was not done.
    """
    args = Namespace(**{field.name: field.read() for field in fields})  # type: ignore[no-untyped-call]
    with TemporaryDirectory() as folder:
        pasted, shown = Path(folder, "pasted"), Path(folder, "shown")
        if PASTED in args:
            pasted.write_text(args[PASTED], encoding="utf-8")
            args[PASTED] = str(pasted)
        if f"--{SHOWN}" in FORMS[words].arguments:
            args[SHOWN] = str(shown)
        sentence = give(words, FORMS[words], desk, args).replace(str(shown), "the table below")
        return f"{sentence}\n\n{shown.read_text(encoding='utf-8')}" if shown.exists() else sentence
