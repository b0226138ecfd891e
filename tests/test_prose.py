"""The measure of what users read, on texts whose sentences are counted by hand."""

import subprocess
import sys
from pathlib import Path

import pytest

from headstart.tests.material.root import ROOT, require_checkout

require_checkout()

SCRIPT = ROOT / ".ci" / "prose.py"
PAGE = """# Five words that are none

Four words of one. And [three words](link.md) more!

| a table | of no words |
| --- | --- |

- One item of five words
- Another of `many words in code`

```bash
no words at all
```
"""


def measure(folder: Path) -> tuple[int, str]:
    done = subprocess.run([sys.executable, SCRIPT, folder], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def write(folder: Path, docstring: str = "One two three.", page: str = PAGE) -> Path:
    (folder / "docs" / "results").mkdir(parents=True)
    (folder / "README.md").write_text(page)
    (folder / "docs" / "page.md").write_text(page)
    (folder / "docs" / "results" / "made.md").write_text("word " * 40_000)
    (folder / "module.py").write_text(f'"""{docstring}"""\n\ndef _private():\n    """{"word " * 40}."""\n')
    return folder


def test_sentences_are_counted_outside_of_tables_headings_and_code(tmp_path: Path) -> None:
    code, printed = measure(write(tmp_path))
    words = len(PAGE.split())
    assert code == 0
    # Four, four, five and three words.
    assert printed.splitlines() == [
        f"README.md: {words} words of 1100, 4.0 of 16 a sentence",
        f"docs: {words} words of 35000, 4.0 of 16 a sentence",
        "docstrings: 3 words, 3.0 of 16 a sentence",
    ]


def test_an_entry_of_args_is_a_sentence_of_its_own(tmp_path: Path) -> None:
    text = "One two three.\n\nArgs:\n    first: Four words of it.\n    second, third (int): Three more words.\n"
    assert "docstrings: 14 words, 4.7 of 16" in measure(write(tmp_path, text))[1]


@pytest.mark.parametrize(
    ("docstring", "page", "above"),
    [("word " * 17, PAGE, 1), ("One two three.", "word " * 17, 2), ("One two three.", "Three words each. " * 400, 1)],
)
def test_long_sentences_and_long_pages_are_above_the_limit(
    tmp_path: Path, docstring: str, page: str, above: int
) -> None:
    assert measure(write(tmp_path, docstring, page))[0] == above
