"""Names of teams and people: which are allowed, and which look alike."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from confusable_homoglyphs.confusables import confusables_data

from headstart.contract.names import TEXT_PATTERN, canonical_name
from headstart.output.errors import UserError

MAX_NAME_LENGTH, MAX_CANONICAL_LENGTH = 64, 256
# Scripts with many letters that look like those of another.
ALIKE = {"LATIN", "CYRILLIC", "GREEK"}
# A pattern of Braille without a dot: Unicode has it among the symbols.
BLANK = "\u2800"
# A skeleton, and whether it is that of a name in lower case.
Look = tuple[bool, str]
# What looks like a text, in both directions: a text that stands for several has an entry for each of them.
_TABLE: dict[str, list[dict[str, Any]]] = confusables_data


def check_name(name: str, taken: Mapping[Look, str], what: str) -> None:
    """Check the name of a new team or person.

    Args:
        name: The name.
        taken: Names that it must not look like, as of `index_names`.
        what: What they are names of, such as `a team`.

    Raises:
        UserError: It is not one line of 1 to 64 visible characters, mixes scripts in a word, or looks like another.
    """
    # No more of a long name is looked at, because normalisation takes quadratic time.
    decomposed = unicodedata.normalize("NFD", name[: MAX_NAME_LENGTH + 1])
    marks = "".join("M" if unicodedata.category(each) == "Mn" else "-" for each in decomposed)
    letters = "".join(each for each in decomposed if not unicodedata.combining(each))
    advice = ""
    # The compatible form of a single character has up to 18 letters.
    if not 0 < len(name) <= MAX_NAME_LENGTH or name != name.strip() or len(canonical_name(name)) > MAX_CANONICAL_LENGTH:
        advice = f"is not valid; give one line of 1 to {MAX_NAME_LENGTH} characters, without spaces at its ends"
    elif unseen := next((each for each in name if not _is_visible(each)), None):
        advice = f"is not valid; leave out the invisible character or unusual space U+{ord(unseen):04X}"
    # The standard allows four (Unicode Technical Standard 39, section 5.4); more cover the lines above and below.
    elif marks.startswith("M") or "MMMMM" in marks:
        advice = "is not valid; use at most 4 marks per letter, and none without a letter"
    elif any(len(_scripts(word)) > 1 for word in re.findall(r"[^\W\d_]+", letters)):
        advice = "mixes Latin, Greek or Cyrillic letters in one word; write each word in one script"
    if advice:
        raise UserError(f"name: {name!r} {advice}")
    if alike := next((taken[look] for look in _looks(name) if look in taken), None):
        raise UserError(f"name: {name!r} looks like {what} that exists, {alike!r}; choose another name")


def index_names(names: Iterable[str]) -> dict[Look, str]:
    """Return names by what they look like, for `check_name`."""
    return {look: name for name in names for look in _looks(name)}


def _is_visible(character: str) -> bool:
    return character.isprintable() and character != BLANK and re.match(TEXT_PATTERN, character) is not None


def _scripts(word: str) -> set[str]:
    """Return the scripts of the letters that look like one of ASCII: an omega in a Latin word deceives nobody."""
    return ALIKE & {unicodedata.name(each, "").partition(" ")[0] for each in word if _prototype(each).isascii()}


@lru_cache(maxsize=10_000)
def _looks(name: str) -> tuple[Look, Look]:
    """Return the skeletons of a name as it is written and in lower case.

    Names with an equal skeleton look alike (Mark Davis and Michel Suignard, Unicode Security Mechanisms, Unicode
    Technical Standard 39, section 4).
    """
    return (False, _skeleton(name)), (True, _skeleton(canonical_name(name)))


def _skeleton(name: str) -> str:
    decomposed = unicodedata.normalize("NFD", " ".join(name.split()))
    # What looks like 1, I and l does not look like L.
    text = "".join(map(_prototype, decomposed)).replace("l", "1")
    return unicodedata.normalize("NFD", text.casefold())


@lru_cache(maxsize=10_000)
def _prototype(character: str) -> str:
    """Return the text that stands for all that look like a character: that with the most entries in the table."""
    alike: list[str] = [character, *(entry["c"] for entry in _TABLE.get(character, ()))]
    return max(alike, key=lambda text: (len(_TABLE.get(text, ())), text))
