"""A full output or a failing disk ends a command in one line."""

import errno
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headstart.output.errors import UserError
from headstart.output.files import digest_file

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="there is no full device")
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["cache"], ["cache", "--help"]])
def test_full_output(arguments: list[str]) -> None:
    with FULL.open("w") as output:
        command = [sys.executable, "-m", "headstart", *arguments]
        ended = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr == "error: the output cannot be written (No space left on device)\n"


@pytest.mark.skipif(not FULL.exists(), reason="there is no full device")
@pytest.mark.parametrize(
    ("arguments", "code"), [(["nonsense"], 2), (["cache", "--remove=nonsense"], 1), (["cache"], 0)]
)
def test_full_error_output_keeps_the_exit_code(arguments: list[str], code: int) -> None:
    with FULL.open("w") as errors:
        command = [sys.executable, "-m", "headstart", *arguments]
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True, check=False)
    assert ended.returncode == code


@pytest.mark.parametrize("failures", [1, 2])
def test_failing_disk_gets_a_second_attempt(failures: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_first(path: Path, *_: Any) -> io.BytesIO:
        attempts.append(path)
        if len(attempts) <= failures:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return io.BytesIO(b"abc")

    attempts: list[Path] = []
    monkeypatch.setattr(Path, "open", fail_first)
    if failures == 1:
        # FIPS 180-2, appendix B.1.
        assert digest_file(Path("a")) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        return
    with pytest.raises(UserError, match=r"^a cannot be read .*; the disk or the network may be failing, try again$"):
        digest_file(Path("a"))
