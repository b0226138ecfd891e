"""`.ci/install.py` finds packages where pip is configured to look for them, and pip installs where uv cannot."""

import os
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from headstart.tests.material.root import load_file, require_checkout

require_checkout()

INSTALL = load_file(".ci/install.py")


def test_settings_of_pip_whatever_else_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    file = tmp_path / "pip.conf"
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    file.write_text("[global]\nquiet = 1\nindex-url = one\nfind-links =\n  a\n  b\n[install]\nindex-url = two\n")
    monkeypatch.setenv("PIP_QUIET", "1")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "x y")
    monkeypatch.setenv("PIP_CONSTRAINT", "")
    settings = INSTALL.read_pip_settings()
    assert settings["index-url"] == "two"
    assert settings["find-links"].split() == ["a", "b"]
    assert settings["extra-index-url"] == "x y"
    assert "constraint" not in settings

    file.write_text("index-url = one\n")
    with pytest.raises(ValueError, match="configuration cannot be read"):
        INSTALL.read_pip_settings()


def test_settings_of_pip_in_the_words_of_uv() -> None:
    settings = {"find-links": "~/a\n/b", "no-index": "true", "quiet": "1", "index-url": "u"}
    assert INSTALL.translate(settings) == {
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_FIND_LINKS": f"{Path.home()}/a,/b",
        "UV_NO_INDEX": "true",
        "UV_INDEX_URL": "u",
    }


# What fails of pip bringing uv, uv, uv without a network, and pip; what runs, and what is said.
WAYS = {
    "": ("uv==", "uv pip"),
    "uv pip": ("uv==", "uv pip", "--offline", "pip install"),
    "uv==": ("uv==", "pip install"),
}


@pytest.mark.parametrize("failing", WAYS)
def test_pip_installs_where_uv_cannot(
    failing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[tuple[str, dict[str, str]]] = []

    def run(command: list[str], env: Any = None, **_: object) -> CompletedProcess[str]:
        ran.append((" ".join(command), env or {}))
        return CompletedProcess(command, int(bool(failing) and failing in ran[-1][0]), stderr="no\nnetwork")

    monkeypatch.setenv("CONSTRAINTS", "first")
    monkeypatch.setattr(INSTALL, "read_pip_settings", lambda: {"constraint": "second"})
    monkeypatch.setattr(INSTALL.subprocess, "run", run)
    assert INSTALL.main(["--editable", "."]) == 0
    assert len(ran) == len(WAYS[failing])
    assert all(words in command for words, (command, _) in zip(WAYS[failing], ran, strict=True))
    assert ran[-1][0].endswith("--editable .")
    assert {env["UV_CONSTRAINT"] for command, env in ran if "uv pip" in command} <= {"first second"}
    assert ("--constraint first" in ran[-1][0]) == bool(failing)
    assert ("pip installs instead, which takes minutes" in capsys.readouterr().err) == bool(failing)
