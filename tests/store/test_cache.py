"""The cache folder is the user's choice, the environment's or the system's, in this order."""

from pathlib import Path

import platformdirs
import pytest

from headstart.store.cache import cache_folder


@pytest.mark.parametrize(
    ("chosen", "environment", "folder"),
    [
        ("mine", "theirs", Path("mine")),
        (None, "theirs", Path("theirs")),
        (None, "", platformdirs.user_cache_path("headstart")),
        ("~/mine", None, Path.home() / "mine"),
    ],
)
def test_cache_folder(
    monkeypatch: pytest.MonkeyPatch, chosen: str | None, environment: str | None, folder: Path
) -> None:
    monkeypatch.delenv("HEADSTART_CACHE")
    if environment is not None:
        monkeypatch.setenv("HEADSTART_CACHE", environment)
    assert cache_folder(chosen) == folder
