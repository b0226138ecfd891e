"""The pages of the notebooks, made from their cells and stored outputs. No cell is run."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
BLANK = re.compile(r"\n\s*(?=\n)")


def notebook_page(path: Path) -> str:
    """Return a notebook as a page in Markdown.

    Args:
        path: The notebook.
    """
    notebook: Any = nbformat.read(path, as_version=4)
    return "\n".join(line for cell in notebook.cells for line in _cell(cell))


def _cell(cell: Any) -> Iterator[str]:  # noqa: ANN401 - nbformat has no types
    if cell.cell_type == "markdown":
        yield from (cell.source, "")
    if cell.cell_type == "code":
        yield from ("```python", cell.source, "```", "")
        for output in cell.outputs:
            yield from _output(output)


def _output(output: Any) -> Iterator[str]:  # noqa: ANN401 - nbformat has no types
    data = output.get("data", {})
    if "image/png" in data:
        yield from (
            f'<img alt="Output of the cell" src="data:image/png;base64,{"".join(data["image/png"].split())}">',
            "",
        )
    elif "text/html" in data:
        # A blank line would end the block of HTML.
        yield from (f"<div>{BLANK.sub('', data['text/html'])}</div>", "")
    else:
        text = ESCAPE.sub("", output.get("text") or data.get("text/plain", "")).rstrip()
        yield from ("```text", text, "```", "") if text else ()
