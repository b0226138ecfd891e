"""The code blocks of a page, each with what a comment on the line before it says."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(r"^(?:<!-- (not run|file): ([^\n]*?) -->\n)?```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Args:
        language: Word after the fence.
        text: What is between the fences.
        reason: Why the block is not run, if it is not.
        file: File that the block is written to instead of being run.
    """

    language: str
    text: str
    reason: str | None
    file: str | None

    def commands(self) -> list[str]:
        """Return the commands of a block of `bash`; a line that ends with a backslash goes on."""
        return [line for line in self.text.replace("\\\n", " ").splitlines() if line.strip()]


def blocks(page: Path) -> Iterator[Block]:
    """Return the blocks of a page in order."""
    for mark, note, language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        yield Block(language, text, note if mark == "not run" else None, note if mark == "file" else None)
