"""Links of the pages as GitHub has them: those that leave docs/ lead to the repository."""

import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from posixpath import normpath

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(\]\()(?![a-z]+:|#)([^)#\s]+)([^)]*\))")


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
