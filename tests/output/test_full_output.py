"""A full output ends a command in one line."""

import subprocess
import sys
from pathlib import Path

import pytest

FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="there is no full device")
def test_full_output() -> None:
    for arguments in (["--version"], ["cache"]):
        with FULL.open("w") as output:
            command = [sys.executable, "-m", "headstart", *arguments]
            ended = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, text=True, check=False)
        assert ended.returncode == 1
        assert ended.stderr == "error: the output cannot be written (No space left on device)\n"
