"""Names of teams and people: which are allowed, and which look alike."""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from confusable_homoglyphs.confusables import confusables_data

from headstart.contract.names import TEXT_PATTERN, canonical_name
from headstart.output.errors import UserError

MAX_NAME_LENGTH, MAX_CANONICAL_LENGTH = 64, 256
# Scripts with many letters that look like those of another.
ALIKE = {"LATIN", "CYRILLIC", "GREEK"}
# What looks like a text, in both directions: a text that stands for several has an entry for each of them.
_TABLE: dict[str, list[dict[str, Any]]] = confusables_data


def check_name(name: str, others: Iterable[str], what: str) -> None:
    """Check the name of a new team or person.

    Args:
        name: The name.
        others: Names that it must not look like.
        what: What they are names of, such as `a team`.

    Raises:
        UserError: It is not one line of 1 to 64 visible characters, mixes scripts in a word, or looks like another.
    """
    is_visible = name.isprintable() and re.match(TEXT_PATTERN, name)
    # The compatible form of a single character has up to 18 letters.
    if (
        not 0 < len(name) <= MAX_NAME_LENGTH
        or not is_visible
        or name != name.strip()
        or len(canonical_name(name)) > MAX_CANONICAL_LENGTH
    ):
        raise UserError(
            f"name: {name!r} is not valid; give one line of 1 to {MAX_NAME_LENGTH} visible characters, without spaces "
            "at its ends"
        )
    if any(len(_scripts(word)) > 1 for word in name.split()):
        raise UserError(
            f"name: {name!r} mixes Latin, Greek or Cyrillic letters in one word; write each word in one script"
        )
    if alike := next((other for other in others if _looks(other) & _looks(name)), None):
        raise UserError(f"name: there is {what} {alike!r}, which {name!r} looks like; choose another name")


def _scripts(word: str) -> set[str]:
    return ALIKE & {unicodedata.name(character, "").partition(" ")[0] for character in word if character.isalpha()}


@lru_cache(maxsize=10_000)
def _looks(name: str) -> frozenset[str]:
    """Return the skeletons of a name as it is written and in lower case.

    Names with an equal skeleton look alike (Mark Davis and Michel Suignard, Unicode Security Mechanisms, Unicode
    Technical Standard 39, section 4).
    """
    return frozenset(_skeleton(form).casefold() for form in (name, canonical_name(name)))


def _skeleton(name: str) -> str:
    decomposed = unicodedata.normalize("NFD", " ".join(name.split()))
    return unicodedata.normalize("NFD", "".join(map(_prototype, decomposed)))


def _prototype(character: str) -> str:
    """Return the text that stands for all that look like a character: that with the most entries in the table."""
    alike: list[str] = [character, *(entry["c"] for entry in _TABLE.get(character, ()))]
    return max(alike, key=lambda text: (len(_TABLE.get(text, ())), text))
