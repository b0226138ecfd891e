"""Files that only their owner can open: the portal's hold submissions, held-out scores and digests of tokens."""

import stat
from contextlib import suppress
from pathlib import Path

from headstart.output.errors import UserError

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def make_private_folder(folder: Path) -> None:
    """Create the folder of the portal's own data, or close an existing one to others.

    Raises:
        UserError: It is open to others and belongs to another user.
    """
    folder.mkdir(stat.S_IRWXU, parents=True, exist_ok=True)
    _close("data", folder)


def make_private_database(file: Path) -> None:
    """Create an empty file for an SQLite database, or close an existing one to others, with the files of its log.

    Raises:
        UserError: One is open to others and belongs to another user.
    """
    # SQLite says why a file cannot be made, and gives the files of its log the permissions of the database.
    with suppress(OSError):
        file.touch(stat.S_IRUSR | stat.S_IWUSR)
    for end in ("", "-wal", "-shm"):
        _close("database", file.with_name(f"{file.name}{end}"))


def _close(option: str, path: Path) -> None:
    with suppress(FileNotFoundError):
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & _OTHERS:
            try:
                path.chmod(mode & ~_OTHERS)
            except PermissionError as error:
                raise UserError(
                    f"{option}: {str(path)!r} is open to others and belongs to another user, who can run "
                    f"`chmod go= {path}`; or choose another"
                ) from error
