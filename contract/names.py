"""Which names and paths the contract allows, and when two are the same but for their spelling.

Some file systems tell other spellings of a name apart and some do not, and people hardly ever can.
"""

from __future__ import annotations

import posixpath
import unicodedata

LONGEST_NAME = 1024

# The patterns are regular expressions of JSON Schema (ECMA-262) and of pydantic (Rust) alike: without lookahead.
_CONTROL = r"\u0000-\u001f\u007f-\u009f"
TEXT_PATTERN = rf"^[^{_CONTROL}]*$"
DATASET_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
_REST = rf"[^/\\{_CONTROL}]"
_DOTTED = rf"\.[^./\\{_CONTROL}]{_REST}*|\.\.{_REST}+"
_SEGMENT = rf"(?:[^./\\{_CONTROL}]{_REST}*|{_DOTTED})"
_FIRST_SEGMENT = rf"(?:[^A-Za-z./\\{_CONTROL}]{_REST}*|[A-Za-z](?:[^:/\\{_CONTROL}]{_REST}*)?|{_DOTTED})"
IDENTIFIER_PATTERN = rf"^{_FIRST_SEGMENT}(?:/{_SEGMENT})*$"

PATTERN_RULES = {
    TEXT_PATTERN: "must hold no control characters",
    DATASET_PATTERN: "must be ASCII letters, digits, '.', '_' and '-', and start with a letter or digit",
    IDENTIFIER_PATTERN: (
        "must be a plain relative path below the dataset's root: no '/' or drive letter at the start, "
        "no backslashes, control characters, empty parts, '.' or '..'"
    ),
}


def canonical_name(name: str) -> str:
    """Give the text on which names match that differ only in Unicode normalisation or case.

    Compatibility caseless matching, The Unicode Standard, section 3.13, definition D146. It takes text of at most
    `LONGEST_NAME` characters: normalising takes quadratic time at worst.
    """
    if name.isascii():
        return name.lower()
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", name).casefold())
    return unicodedata.normalize("NFKC", folded.casefold())


def canonical_stimulus(dataset_name: str, image_identifier: str) -> tuple[str, str]:
    """Give the names of a dataset and of a path in it, both without differences of normalisation or case.

    The path is one without `./`, `//`, `a/..` and with `/` for backslashes.
    """
    path = canonical_name(image_identifier).replace("\\", "/")
    return canonical_name(dataset_name), posixpath.normpath(path)
