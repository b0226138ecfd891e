"""Problems of a document of the contract, and the error that lists them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headstart.output.errors import UserError
from headstart.output.printable import printable

MAX_VALUE_LENGTH = 80
MAX_LISTED = 5


@dataclass(frozen=True)
class Problem:
    """One breach of a rule.

    Attributes:
        pointer: JSON pointer (RFC 6901) to the value; empty for the whole document.
        value: The value as short ASCII JSON; empty where there is none.
        rule: The rule, and how to keep it.
    """

    pointer: str
    value: str
    rule: str

    def __str__(self) -> str:
        """Return the problem as one line; it is ASCII if the rule is ASCII."""
        where = " ".join(part for part in (self.pointer, self.value) if part)
        return f"{where}: {self.rule}" if where else self.rule


class ContractError(UserError):
    """A document breaks the contract. The message is one line that lists the first problems.

    Args:
        document: Name of the document, such as `submission entry.json`.
        problems: At least one problem.
    """

    def __init__(self, document: str, problems: Sequence[Problem]) -> None:
        self.document = printable(document)
        self.problems = list(problems)
        count = f"{len(self.problems)} problem{'s' if len(self.problems) > 1 else ''}"
        listed = [str(problem) for problem in self.problems[:MAX_LISTED]]
        if len(self.problems) > MAX_LISTED:
            listed.append(f"and {len(self.problems) - MAX_LISTED} more")
        super().__init__(f"{self.document}: {count}: {'; '.join(listed)}")

    @classmethod
    def of(cls, document: str, rule: str) -> ContractError:
        """Return the error for one rule that the whole document breaks."""
        return cls(document, [Problem("", "", rule)])


def short_json(value: object) -> str:
    """Return a value as ASCII JSON of at most 80 characters; control characters are escaped."""
    return shorten(_ascii_json(value))


def join_pointer(parts: Iterable[str | int]) -> str:
    """Build a JSON pointer (RFC 6901) that is safe to print, from names of fields and indices of lists.

    Names are escaped as in ASCII JSON and cut to 80 characters.
    """
    names = (str(part).replace("~", "~0").replace("/", "~1") for part in parts)
    return "".join("/" + shorten(_ascii_json(name)[1:-1]) for name in names)


def shorten(text: str) -> str:
    """Cut a longer text to 80 characters that end in three dots."""
    return text if len(text) <= MAX_VALUE_LENGTH else text[: MAX_VALUE_LENGTH - 3] + "..."


def _ascii_json(value: object) -> str:
    # DEL is the only control character that JSON does not escape.
    return json.dumps(value, ensure_ascii=True).replace("\x7f", "\\u007f")
