"""The cache folder is the user's choice, the environment's or the system's, in this order."""

from pathlib import Path

import platformdirs
import pytest

from headstart.store.cache import cache_folder


def test_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    for chosen, environment, folder in (
        ("mine", "theirs", Path("mine")),
        (None, "theirs", Path("theirs")),
        (None, "", platformdirs.user_cache_path("headstart")),
        ("~/mine", "", Path.home() / "mine"),
    ):
        monkeypatch.setenv("HEADSTART_CACHE", environment)
        assert cache_folder(chosen) == folder
