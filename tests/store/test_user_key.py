"""Every process of a user has the same key, which nobody else can read."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headstart.store.user_key import SIZE, UserKeyError, user_key

ROOT = Path(__file__).parents[2]


def key_file() -> Path:
    return Path(os.environ["XDG_STATE_HOME"]) / "headstart" / "checkpoint.key"


def test_the_key_stays_and_is_the_users_alone() -> None:
    key = user_key()
    assert len(key) == SIZE
    assert user_key() == key == key_file().read_bytes()
    assert key_file().stat().st_mode & 0o777 == 0o600
    assert key_file().parent.stat().st_mode & 0o777 == 0o700
    assert list(key_file().parent.iterdir()) == [key_file()]


def test_processes_that_create_it_at_once_agree() -> None:
    body = "import sys; from headstart.store.user_key import user_key; input(); print(user_key().hex())"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", body], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(6)
    ]
    for each in started:
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.flush()
    assert {each.communicate()[0] for each in started} == {f"{user_key().hex()}\n"}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_key_that_others_know_or_can_replace_is_not_used(mode: int) -> None:
    user_key()
    key_file().chmod(mode)
    with pytest.raises(UserKeyError, match="others can read it; remove it"):
        user_key()


def test_a_damaged_key_is_named() -> None:
    user_key()
    key_file().write_bytes(b"short")
    with pytest.raises(UserKeyError, match="damaged; remove it"):
        user_key()


def test_a_user_without_a_home_has_no_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(UserKeyError, match="set XDG_STATE_HOME"):
        user_key()
    assert list(tmp_path.iterdir()) == []
