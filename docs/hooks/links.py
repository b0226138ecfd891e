"""Pages as GitHub shows them: links that leave docs/ lead to the repository, and lists and tables are the same."""

import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from posixpath import normpath

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(\]\()(?![a-z]+:|#)([^)#\s]+)([^)]*\))")

# A list right after a paragraph, and an escaped bar in a table's code: Python-Markdown reads both otherwise.
LIST = re.compile(r"^((?!#|\||>|[-*] |\d+\. |\s).+\n)(?=[-*] |1\. )", re.MULTILINE)
BAR = re.compile(r"`[^`\n]*`")


def as_on_github(text: str) -> str:
    """Return a page's text so that MkDocs shows what GitHub does.

    Args:
        text: The page, in Markdown.
    """
    parts = FENCE.split(text)
    return "".join(part if part.startswith("```") else _unescaped(LIST.sub(r"\1\n", part)) for part in parts)


def _unescaped(text: str) -> str:
    lines = text.split("\n")
    return "\n".join(
        BAR.sub(lambda match: match[0].replace("\\|", "|"), line) if line.startswith("|") else line for line in lines
    )


def outward(text: str, page: str, repository: str, warn: Callable[[str], None]) -> str:
    """Return a page's text with the links that lead out of docs/ made links to the repository.

    Args:
        text: The page, in Markdown.
        page: Its path in docs/.
        repository: Address of the repository.
        warn: Is told of links that lead nowhere.
    """

    def replace(match: re.Match[str]) -> str:
        path = PurePosixPath(normpath(PurePosixPath("docs", page).parent / match[2]))
        if path.parts[:1] == ("docs",):
            return f"{match[1]}{match[2].replace('.ipynb', '.md')}{match[3]}"
        if not (ROOT / path).exists():
            warn(f"{page} links to {match[2]}, which does not exist")
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"{match[1]}{repository}/{kind}/main/{path}{match[3]}"

    parts = FENCE.split(text)
    return "".join(part if part.startswith("```") else LINK.sub(replace, part) for part in parts)
