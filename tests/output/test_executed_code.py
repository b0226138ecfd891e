"""What ran is recorded, and nothing that runs is disturbed."""

import runpy
import subprocess
import sys
from pathlib import Path

from headstart.modules.running_code import user_modules


def test_a_prompt_goes_on(tmp_path: Path) -> None:
    typed = "import headstart\nprint('first')\nprint('second')\n"
    done = subprocess.run([sys.executable, "-q", "-i"], input=typed, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout == "first\nsecond\n"
    assert "Error" not in done.stderr


def test_files_and_texts_have_entries_of_their_own(tmp_path: Path) -> None:
    names = [tmp_path / "headstart", tmp_path / "a" / "part.py", tmp_path / "b" / "part.py"]
    for number, path in enumerate(names):
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"S = {number}")
        runpy.run_path(str(path))
    assert {f"<{path}>" for path in names} <= user_modules().keys()
    assert "headstart" not in user_modules()
    before = user_modules().keys()
    runner = tmp_path / "runner.py"
    runner.write_text('exec("S = 1")')
    runpy.run_path(str(runner))
    assert user_modules().keys() - before == {f"<{runner}>", f"<a text that {runner} runs>"}
