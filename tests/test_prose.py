"""The measure of what users read, on texts whose sentences are counted by hand."""

import subprocess
import sys
from pathlib import Path

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


def measure(folder: Path, page: str = PAGE) -> tuple[int, list[str]]:
    (folder / "docs" / "results").mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text(page)
    (folder / "docs" / "page.md").write_text(page)
    (folder / "docs" / "results" / "made.md").write_text("word " * 40_000)
    done = subprocess.run([sys.executable, SCRIPT, folder], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


def test_sentences_are_counted_outside_of_tables_headings_and_code(tmp_path: Path) -> None:
    words = len(PAGE.split())
    # Four, four, five and three words.
    pages = [
        f"README.md: {words} words of 1100, 4.0 of 16 a sentence",
        f"docs: {words} words of 35000, 4.0 of 16 a sentence",
    ]
    assert measure(tmp_path) == (0, pages)
    # Long sentences of both kinds of pages, and a long page.
    assert measure(tmp_path, "word " * 17)[0] == 2
    assert measure(tmp_path, "Three words each. " * 400)[0] == 1
