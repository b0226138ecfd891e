"""Texts from anywhere, made safe to show: no character of them is a command of the terminal, or invisible."""

import shutil
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

# Replaces characters that an output's encoding lacks.
PLAIN = str.maketrans("–−…", "--.")


def printable(text: str) -> str:
    """Escape, into one line, what a terminal does not show as a character, undecodable bytes of paths included.

    These are control characters, marks of writing direction, characters without width, and unusual spaces.
    """
    return text if text.isprintable() else "".join(map(_escaped, text))


def encodable(text: str, stream: TextIO | None = None) -> str:
    """Replace what the encoding of a stream, by default the output, lacks and what would end the command."""
    encoding = getattr(stream or sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(PLAIN).encode(encoding, "replace").decode(encoding)
    return text


def say(line: str, stream: TextIO | None = None) -> None:
    """Print a line immediately, escaped; every line that is no table comes through here.

    Args:
        line: The line.
        stream: Where it goes, by default the output.
    """
    print(encodable(printable(line), stream), file=stream, flush=True)


def print_written(files: Iterable[Path]) -> None:
    """Print where files are that were written."""
    say(f"wrote {', '.join(map(str, files))}")


def print_lines(lines: Iterable[str], indent: int = 0) -> None:
    """Print sentences within the width of the terminal, or 80 columns where there is no terminal; no word is broken.

    Args:
        lines: The sentences.
        indent: Spaces before what does not fit into a sentence's first line.
    """
    width = shutil.get_terminal_size((80, 24)).columns
    wrapper = textwrap.TextWrapper(
        width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )
    for line in lines:
        print(wrapper.fill(encodable(printable(line))), flush=True)


def _escaped(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()
