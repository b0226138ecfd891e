"""Files that are complete or not there."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headstart.output.errors import UserError
from headstart.output.files import (
    replacing,
    write_texts,
    write_together,
)
from headstart.output.results_folder import ResultsFolder


def results(folder: Path, overwrite: bool = False) -> ResultsFolder:
    return ResultsFolder("", ["result.json", "picture.png"], str(folder), overwrite)


def test_a_file_appears_at_the_end_and_failure_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    with replacing(path) as partial:
        partial.write_text("old")
        assert not path.exists()

    def fail(error: type[BaseException]) -> None:
        with replacing(path) as partial:
            partial.write_text("new")
            raise error

    for error in (OSError, KeyboardInterrupt):
        with pytest.raises(error):
            fail(error)
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]


def test_other_results_are_told_from_the_same(tmp_path: Path) -> None:
    made_from = {"team": "red", "digests/catalog": "abc", "measure": None}
    result, folder = tmp_path / "result.json", results(tmp_path)
    folder.check_configuration(made_from)
    result.write_text(json.dumps({"team": "red", "digests": {"catalog": "abc"}, "seconds": 3}))
    folder.check_configuration(made_from)
    for other, differing in (
        ({"team": "blue"}, "team"),
        ({"measure": "rbf"}, "measure"),
        ({"team": 1, "digests/catalog": "x"}, "team, digests/catalog"),
        ({"team/name": "red"}, "team/name"),
    ):
        with pytest.raises(UserError, match=rf"^output: '.*result\.json' holds .* \({differing}\); choose another"):
            folder.check_configuration({**made_from, **other})
        results(tmp_path, overwrite=True).check_configuration({**made_from, **other})


def test_files_appear_together_and_the_last_one_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "made"
    appeared: list[str] = []
    replace = Path.replace

    def watched(self: Path, to: Path) -> Path:
        appeared.append(to.name)
        return replace(self, to)

    monkeypatch.setattr(Path, "replace", watched)
    texts = {"b.txt": "1", "a.txt": "ä\n", "c.txt": ""}
    assert write_texts(folder, texts) == [folder / name for name in texts]
    assert {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()} == texts
    assert appeared == list(texts)


def test_none_of_the_files_appears_where_one_fails(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")

    def fail(path: Path) -> None:
        path.write_text("half")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_together(tmp_path, {"a.txt": lambda path: path.write_text("new"), "b.txt": fail})
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.txt": "old"}


KILLED = """
import os, signal, sys
from pathlib import Path
from headstart.output.files import replacing
with replacing(Path(sys.argv[1])) as partial:
    partial.write_text("half")
    print(partial, flush=True)
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="nothing is locked there")
def test_files_of_a_killed_process_are_removed_and_unfinished_ones_stay(tmp_path: Path) -> None:
    path = tmp_path / "score[1].json"
    (tmp_path / "score[1].json.mine").touch()
    command = [sys.executable, "-c", KILLED, str(path)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        left = Path(writer.stdout.readline().strip())
        with replacing(path) as partial:
            partial.write_text("one")
        assert left.read_text() == "half"
        writer.communicate("")
        assert writer.returncode == -signal.SIGKILL
    assert left.exists()
    with replacing(path) as partial:
        partial.write_text("two")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["score[1].json", "score[1].json.mine"]
    assert path.read_text() == "two"
