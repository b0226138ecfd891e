"""Check that users have little to read: words of the README and of docs/, words a sentence of both and of docstrings.

    python .ci/prose.py [FOLDER]

docs/results/ is made by commands, and is not counted.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

WORDS_A_SENTENCE = 16
WORDS = {"README.md": 1_100, "docs": 35_000}
# Folders whose docstrings are no one's documentation.
INNER = ("tests", "benchmarks", ".ci", ".venv", "build", "site", "runs")
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


def docstrings(root: Path) -> Iterator[str]:
    """Return the docstrings of public modules, classes and functions, without the headings of their sections.

    Args:
        root: The checkout.
    """
    for file in sorted(root.rglob("*.py")):
        if file.relative_to(root).parts[0] in INNER:
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and not is_private(node):
                text = ast.get_docstring(node) or ""
                yield re.sub(r"^(?:Args|Returns|Raises|Yields|Attributes|Shape|Example|Note):$", "\n", text, flags=re.M)


def is_private(node: ast.AST) -> bool:
    """Return whether a name begins with an underscore, `__init__` and the like apart.

    Args:
        node: A module, class or function.
    """
    name = getattr(node, "name", "")
    return name.startswith("_") and not name.startswith("__")


def sentences_of_docstring(text: str) -> list[int]:
    """Count the words of each sentence of a docstring; every entry of `Args:` begins a new one.

    Args:
        text: The docstring.
    """
    return words_in_sentences(re.sub(r"^    (?=\w[\w ,*]*(?: \(.*\))?: )", "\n", text, flags=re.M))


def measure(root: Path) -> dict[str, tuple[int, float]]:
    """Count words and words a sentence of the README, of docs/ and of docstrings.

    Args:
        root: The checkout.

    Returns:
        For each, its words and its words a sentence.
    """
    pages = [page for page in sorted(root.glob("docs/**/*.md")) if "results" not in page.relative_to(root).parts]
    texts = {"README.md": [(root / "README.md").read_text(encoding="utf-8")]}
    texts["docs"] = [page.read_text(encoding="utf-8") for page in pages]
    lengths = {name: [n for text in of for n in words_in_sentences(text)] for name, of in texts.items()}
    texts["docstrings"] = list(docstrings(root))
    lengths["docstrings"] = [n for text in texts["docstrings"] for n in sentences_of_docstring(text)]
    return {
        name: (sum(len(text.split()) for text in texts[name]), sum(counts) / max(1, len(counts)))
        for name, counts in lengths.items()
    }


def main(root: Path) -> int:
    """Print the measures, and return how many are above their limit.

    Args:
        root: The checkout.
    """
    above = 0
    for name, (words, length) in measure(root).items():
        limit = WORDS.get(name)
        is_above = length > WORDS_A_SENTENCE or (limit is not None and words > limit)
        above += is_above
        print(f"{name}: {words} words{f' of {limit}' if limit else ''}, {length:.1f} of {WORDS_A_SENTENCE} a sentence")
    return above


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
