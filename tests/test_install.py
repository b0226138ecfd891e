"""`.ci/install.py` finds packages where pip is configured to look for them, and leaves the rest to pip."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headstart.tests.material.root import load_file, require_checkout

require_checkout()

INSTALL = load_file(".ci/install.py")


@pytest.fixture
def pip_conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only file of settings that pip reads."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    return tmp_path / "pip.conf"


def test_settings_of_pip_in_the_words_of_uv(pip_conf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip_conf.write_text("[global]\nquiet = 1\nindex-url = one\nfind-links =\n  ~/a\n  /b\n[install]\nindex-url = two\n")
    monkeypatch.setenv("PIP_INDEX_URL", "three")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "x  y")
    monkeypatch.setenv("PIP_CONSTRAINT", "")
    expected = {
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_FIND_LINKS": f"{Path.home()}/a,/b",
        "UV_INDEX_URL": "three",
        "UV_EXTRA_INDEX_URL": "x y",
    }
    # This machine may have settings of its own, too.
    assert expected.items() <= INSTALL.read_variables().items()


def test_pip_installs_with_a_setting_that_uv_lacks(
    pip_conf: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pip_conf.write_text("[global]\nprefer-binary = true\n")
    run, installs = subprocess.run, []

    def pretend(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        if "install" in command:
            installs.append(command)
            return subprocess.CompletedProcess(command, 3)
        return run(command, **options)  # type: ignore[call-overload,no-any-return]

    monkeypatch.setattr(subprocess, "run", pretend)
    monkeypatch.setenv("CONSTRAINTS", "limits.txt")
    assert INSTALL.main(["example"]) == 3
    assert installs == [[sys.executable, "-m", "pip", "install", "--quiet", "--constraint", "limits.txt", "example"]]
    assert capsys.readouterr().err == (
        "pip's setting prefer-binary is unknown to uv: pip installs instead, which takes minutes\n"
    )
