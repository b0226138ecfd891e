"""A page as a reader of its source finds it: tables, addresses, scripts."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

# Elements that have no end.
VOID = {"meta", "link", "input", "br", "use", "path", "wbr"}


class Page(HTMLParser):
    """The content of a page.

    Attributes:
        tables: Texts of the cells, row by row, by caption.
        addresses: All that attributes lead to.
        texts: What is read outside of tables, scripts and styles.
        scripts: The scripts, and the blocks of data.
        styles: The styles.
        tags: Names of all elements.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.addresses: list[str] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.tags: list[str] = []
        self._open: list[str] = []
        self._rows: list[list[str]] = []
        self.feed(path.read_text(encoding="utf-8"))
        self.close()
        assert not self._open

    @property
    def content(self) -> dict[str, Any]:
        """The data that the page's script reads."""
        document: dict[str, Any] = json.loads(self.scripts[0])
        return document

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "action", "data")]
        if tag not in VOID:
            self._open.append(tag)
        if tag == "table":
            self._rows = []
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th"):
            self._rows[-1].append("")
        elif tag == "caption":
            self._caption = ""
        elif tag in ("script", "style"):
            (self.scripts if tag == "script" else self.styles).append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        assert self._open.pop() == tag
        if tag == "table":
            self.tables[self._caption] = self._rows

    def handle_data(self, data: str) -> None:
        inside = set(self._open)
        if "caption" in inside:
            self._caption += data
        elif inside & {"td", "th"}:
            self._rows[-1][-1] += data
        elif "script" in inside:
            self.scripts[-1] += data
        elif "style" in inside:
            self.styles[-1] += data
        elif data.strip():
            self.texts.append(data)
