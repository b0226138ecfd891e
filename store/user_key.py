"""The secret key of this user, by which files that run code are known to be the user's own."""

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

from platformdirs import user_state_dir

from headstart.output.errors import reason_of

FILE = "checkpoint.key"
# Bytes of a key.
SIZE = 32


class UserKeyError(OSError):
    """The key cannot be read or created."""


def user_key() -> bytes:
    """Return the key of this user, which is created at the first call.

    It lies in the user's state directory (`XDG_STATE_HOME`, else `~/.local/state` on Linux) and in no ledger, so that
    nobody who hands over a ledger can know it.

    Raises:
        UserKeyError: The key cannot be read or created, or others could know it.
    """
    path = _key_file()
    try:
        if not path.exists():
            _create(path)
        return _read(path)
    except UserKeyError:
        raise
    except OSError as error:
        raise UserKeyError(
            f"the user's key {str(path)!r} cannot be used ({reason_of(error)}); set XDG_STATE_HOME to a folder that "
            "only the user can read"
        ) from error


def _key_file() -> Path:
    try:
        path = Path(user_state_dir("headstart")) / FILE
    except RuntimeError:
        path = Path()
    # A user without a home, as in some containers; platformdirs raises an error there, or returns "~/...".
    if not path.is_absolute():
        raise UserKeyError("the user has no home; set XDG_STATE_HOME to a folder that only the user can read")
    return path


def _create(path: Path) -> None:
    """Create the key; of several processes that do so at once, one creates the key of all."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, partial = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(SIZE))
            file.flush()
            os.fsync(file.fileno())
        # A link appears with its whole content, or not at all where there is one already.
        with suppress(FileExistsError):
            os.link(partial, path)
    finally:
        Path(partial).unlink()


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        state = os.fstat(file.fileno())
        key = file.read(SIZE + 1)
    if os.name == "posix" and (state.st_uid != os.geteuid() or state.st_mode & 0o077):
        raise UserKeyError(
            f"the user's key {str(path)!r} belongs to another user, or others can read it; remove it, and a new one is "
            "created"
        )
    if len(key) != SIZE:
        raise UserKeyError(f"the user's key {str(path)!r} is damaged; remove it, and a new one is created")
    return key
