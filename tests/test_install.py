"""`.ci/install.py` hands uv the settings of pip that say where packages come from, and leaves to pip what uv cannot."""

import os
from pathlib import Path
from types import SimpleNamespace
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


# Exit codes of the commands after the first, which lists pip's settings; programs that they run, and what is printed.
CASES: list[tuple[list[int], list[str], str]] = [
    ([0, 0], ["pip", "uv"], ""),
    ([0, 2, 0], ["pip", "uv", "uv --offline"], ""),
    ([1, 0], ["pip", "pip --constraint limits"], "pip finds no uv=="),
    ([0, 2, 2, 3], ["pip", "uv", "uv --offline", "pip --constraint limits"], "uv failed (no way)"),
]


def test_pip_installs_what_uv_cannot(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CONSTRAINTS", "limits")
    for codes, programs, printed in CASES:
        commands, waiting, variables = list[str](), [0, *codes], dict[str, str]()

        def run(command: list[str], waiting: Any = waiting, commands: Any = commands, **options: Any) -> Any:
            commands.append(" ".join(command))
            variables.update(options.get("env", {}))  # noqa: B023
            return SimpleNamespace(returncode=waiting.pop(0), stdout="global.constraint='ours'\n", stderr="no\nway")

        monkeypatch.setattr(INSTALL, "subprocess", SimpleNamespace(run=run, DEVNULL=None, PIPE=None))
        assert INSTALL.main(["example"]) == codes[-1]
        assert len(commands) == 1 + len(programs)
        for command, program in zip(commands[1:], programs, strict=True):
            name, _, option = program.partition(" ")
            assert f" -m {name} " in command
            assert option in command
        assert commands[-1].endswith(" example")
        assert variables.get("UV_CONSTRAINT", "limits ours") == "limits ours"
        assert capsys.readouterr().err.startswith(printed)
