"""`make portal` starts what `tests/portal/test_serve.py` tests."""

import os
import shutil
import subprocess

import pytest

from headstart.tests.material.root import ROOT, require_checkout


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_portal_hands_its_options_on() -> None:
    require_checkout()
    # Independent of a make that runs this test, and with an environment that is ready.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "--just-print", "--old-file=.venv/.ready-portal", "portal", "ARGS=--port 8000"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines()[-1] == ".venv/bin/headstart portal --port 8000"
