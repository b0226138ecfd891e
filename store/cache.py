"""The folder of downloads and computed features."""

import os
from pathlib import Path

from platformdirs import user_cache_dir


def cache_folder(chosen: str | None = None) -> Path:
    """Return the cache folder, which need not exist.

    Args:
        chosen: The folder that the user named, if any.

    Returns:
        That folder, else the one in the environment variable HEADSTART_CACHE, else one in the user's cache
        directory.
    """
    folder = chosen or os.environ.get("HEADSTART_CACHE") or user_cache_dir("headstart")
    return Path(folder).expanduser()
