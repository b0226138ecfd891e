"""Check that users have little to read: words, and words a sentence, of the README and of docs/.

    python .ci/prose.py [FOLDER]

docs/results/ is made by commands, and is not counted.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

WORDS_A_SENTENCE = 16
WORDS = {"README.md": 1_100, "docs": 35_000}
SKIPPED = re.compile(r"^```.*?^```|^<!--.*?-->|^(?:\||#|!|\[).*?$", re.MULTILINE | re.DOTALL)
# The end of a sentence, of a paragraph or of an item.
BREAK = re.compile(r"(?:(?<=[.!?])\s+|\n\s*\n\s*|\n\s*(?=- ))(?:- )?")


def words_in_sentences(text: str) -> list[int]:
    """Count the words of each sentence of Markdown; tables, headings and code are left out.

    Args:
        text: The page.
    """
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", SKIPPED.sub("\n", text))
    text = re.sub(r"`[^`]*`", "x", text)
    return [count for part in BREAK.split(text) if (count := len(part.split())) > 2]


def measure(root: Path) -> dict[str, tuple[int, float]]:
    """Count words, and words a sentence, of the README and of docs/.

    Args:
        root: The checkout.

    Returns:
        For each, its words and its words a sentence.
    """
    pages = [page for page in sorted(root.glob("docs/**/*.md")) if "results" not in page.relative_to(root).parts]
    measures = {}
    for name, files in {"README.md": [root / "README.md"], "docs": pages}.items():
        texts = [file.read_text(encoding="utf-8") for file in files]
        counts = [count for text in texts for count in words_in_sentences(text)]
        measures[name] = sum(len(text.split()) for text in texts), sum(counts) / max(1, len(counts))
    return measures


def main(root: Path) -> int:
    """Print the measures, and return how many are above their limit.

    Args:
        root: The checkout.
    """
    above = 0
    for name, (words, length) in measure(root).items():
        limit = WORDS[name]
        above += length > WORDS_A_SENTENCE or words > limit
        print(f"{name}: {words} words of {limit}, {length:.1f} of {WORDS_A_SENTENCE} a sentence")
    return above


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
