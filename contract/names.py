"""Names and paths that the contract allows, and the canonical forms that find equal ones in other spellings.

Some file systems distinguish other spellings of a name and some do not, and people hardly ever can.
"""

import posixpath
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

LONGEST_NAME = 1024

# The patterns have no lookahead, so that JSON Schema (ECMA-262) and pydantic (Rust) read them alike.
# These characters are invisible or change how others are shown: Unicode's categories Cc, Cf, Zl and Zp, and all other
# characters with Default_Ignorable_Code_Point (Unicode Character Database, DerivedCoreProperties). Beyond U+FFFF the
# two kinds of expression share no escape.
_CONTROL = (
    r"\u0000-\u001f\u007f-\u009f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890-\u0891\u08e2\u115f-\u1160\u17b4-\u17b5"
    r"\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
TEXT_PATTERN = rf"^[^{_CONTROL}]*$"
# Only Latin letters, with or without visible marks, are allowed, because letters of other scripts look like them
# (Unicode Technical Standard 39, confusables): Latin-1 and Latin Extended-A without capital eth and D with stroke,
# which look alike, dotless i, kra, n preceded by apostrophe and long s; Latin Extended Additional; and combining marks.
# Only single spaces are allowed within a name, because their number is hard to see.
_LATIN = (
    r"\u00c0-\u00cf\u00d1-\u00d6\u00d8-\u00f6\u00f8-\u010f\u0111-\u0130\u0132-\u0137\u0139-\u0148\u014a-\u017e"
    r"\u1e00-\u1e99\u1ea0-\u1ef9\u0300-\u030c\u0323-\u0328"
)
_WORD = rf"[!-Z\\^-~{_LATIN}]+"
MODEL_PATTERN = rf"^{_WORD}(?: {_WORD})*$"
ARGUMENT_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$"
DATASET_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
_REST = rf"[^/\\{_CONTROL}]"
_DOTTED = rf"\.[^./\\{_CONTROL}]{_REST}*|\.\.{_REST}+"
_SEGMENT = rf"(?:[^./\\{_CONTROL}]{_REST}*|{_DOTTED})"
_FIRST_SEGMENT = rf"(?:[^A-Za-z./\\{_CONTROL}]{_REST}*|[A-Za-z](?:[^:/\\{_CONTROL}]{_REST}*)?|{_DOTTED})"
IDENTIFIER_PATTERN = rf"^{_FIRST_SEGMENT}(?:/{_SEGMENT})*$"

PATTERN_RULES = {
    TEXT_PATTERN: "must contain no control characters and no invisible ones",
    MODEL_PATTERN: (
        "must contain no control characters, no square brackets, no letters but Latin ones, no signs beyond ASCII, "
        "and only single spaces between words"
    ),
    ARGUMENT_PATTERN: "must be the name of an argument, of ASCII letters, digits and '_'",
    DATASET_PATTERN: "must be ASCII letters, digits, '.', '_' and '-', and start with a letter or digit",
    IDENTIFIER_PATTERN: (
        "must be a plain relative path below the dataset's root: no '/' or drive letter at the start, "
        "no backslashes, control or invisible characters, empty parts, '.' or '..'"
    ),
}


def canonical_name(name: str) -> str:
    """Return the form that is equal for names that differ only in Unicode normalisation or case.

    Compatibility caseless matching, The Unicode Standard, section 3.13, definition D146. Pass text of at most
    `LONGEST_NAME` characters: normalisation takes quadratic time at worst.
    """
    if name.isascii():
        return name.lower()
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", name).casefold())
    return unicodedata.normalize("NFKC", folded.casefold())


def named_models(key: str, entries: Sequence[Any]) -> Iterator[tuple[Any, str, str]]:
    """Yield the entry, the JSON pointer to the name, and the name of each submitted model.

    Args:
        key: Key of the document that the entries are under.
        entries: Submitted models in either form; entries without a name that can be compared are left out.
    """
    for index, entry in enumerate(entries):
        pointer, name = f"/{key}/{index}", entry
        if isinstance(entry, dict):
            pointer, name = f"{pointer}/model_name", entry.get("model_name")
        if isinstance(name, str) and len(name) <= LONGEST_NAME:
            yield entry, pointer, name


def canonical_stimulus(dataset_name: str, image_identifier: str) -> tuple[str, str]:
    """Return the canonical names of a dataset and of a path in it.

    The path has no `./`, `//` and `a/..`, and `/` for backslashes. Paths that differ in case alone are different files;
    names of datasets that differ in case alone are equal.
    """
    path = image_identifier if image_identifier.isascii() else unicodedata.normalize("NFKC", image_identifier)
    return canonical_name(dataset_name), posixpath.normpath(path.replace("\\", "/"))
