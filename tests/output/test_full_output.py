"""A full output or a failing disk ends a command in one line."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import pytest

from headstart.output import files
from headstart.output.errors import UserError

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="there is no full device")
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["cache"], ["cache", "--help"]])
def test_full_output(arguments: list[str]) -> None:
    with FULL.open("w") as output:
        command = [sys.executable, "-m", "headstart", *arguments]
        ended = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr == "error: the output cannot be written (No space left on device)\n"


@pytest.mark.parametrize("failures", [1, 2])
def test_failing_disk_gets_a_second_attempt(failures: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_first(*arguments: Any, **_: Any) -> IO[Any]:
        attempts.append(arguments)
        if len(attempts) <= failures:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return path.open("rb")

    attempts: list[Any] = []
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    monkeypatch.setattr(files, "open", fail_first, raising=False)
    if failures == 1:
        # FIPS 180-2, appendix B.1.
        assert files.digest_file(path) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        return
    with pytest.raises(UserError, match=r"/a cannot be read .*; the disk or the network may be failing, try again$"):
        files.digest_file(path)
