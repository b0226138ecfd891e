"""The command that lists a folder's pictures as a catalog."""

import os
from pathlib import Path

import pytest

from headstart.__main__ import main
from headstart.contract.documents import read_catalog
from headstart.scripts.write_catalog import write_catalog
from headstart.tests.material.mistakes import error_line


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b/2.png", "b/1.JPG", "a/3.webp", "a/notes.txt"):
        path = tmp_path / "birds" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path / "birds"


def test_only_pictures_of_the_folder_are_listed(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "secret.png").touch()
    (folder / "folder.jpg").mkdir()
    (folder / "folder.jpg" / "c.gif").touch()
    (folder / "out.png").symlink_to(tmp_path / "secret.png")
    (folder / "broken.png").symlink_to(tmp_path / "absent.png")
    (folder / "within.png").symlink_to(folder / "b" / "2.png")
    (folder / "a\\b.png").touch()
    (folder / "a\udcff.png").touch()
    os.mkfifo(folder / "pipe.png")
    (folder / "again").symlink_to(folder / "b")
    (folder / "a" / "across").symlink_to(folder / "b")
    (folder / "b" / "across").symlink_to(folder / "a")
    (tmp_path / "link").symlink_to(folder)
    for root in (folder, tmp_path / "link"):
        write_catalog(str(root), str(tmp_path / "all.jsonl"))
        stimuli = read_catalog(tmp_path / "all.jsonl").stimuli
        assert {each.dataset_name for each in stimuli} == {"birds"}
        names = [each.image_identifier for each in stimuli]
        linked = [f"again/{name}" for name in ("1.JPG", "2.png", "across/3.webp")]
        first = ["a/3.webp", "a/across/1.JPG", "a/across/2.png"]
        assert names == [*first, *linked, "b/1.JPG", "b/2.png", "b/across/3.webp", "folder.jpg/c.gif", "within.png"]
        counts = (
            ".txt (3), link loop (3), name that the contract refuses (2), dangling link (1), link out of the folder (1)"
        )
        assert f"11 files left out: {counts}, no file (1); " in capsys.readouterr().out


def test_mistakes_are_one_line_and_change_no_catalog(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, absent = tmp_path / "some.jsonl", str(tmp_path / "nope" / "x.jsonl")
    output.write_text("as before")
    # Two names that differ in their Unicode form alone.
    twice = tmp_path / "twice"
    twice.mkdir()
    for name in ("caf\u00e9.jpg", "cafe\u0301.jpg"):
        (twice / name).touch()
    for words, message in (
        ([tmp_path / "absent", f"--output={output}"], "holds no pictures"),
        ([folder, f"--output={absent}"], f"output: {absent!r} cannot be written: No such file or directory"),
        (
            [folder, f"--output={output}", "--dataset_name=my birds"],
            '3 problems: /dataset_name "my birds": line 1: must be',
        ),
        ([twice, f"--output={output}"], "the same stimulus as in line"),
    ):
        assert message in error_line(capsys, lambda words=words: main(["write-catalog", *map(str, words)]))  # type: ignore[misc]
    assert output.read_text() == "as before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["birds", "some.jsonl", "twice"]
    main(["write-catalog", str(folder), f"--output={output}", "--dataset_name=cubs"])
    assert output.read_text().count("cubs") == 3
    assert capsys.readouterr().out.endswith(f"wrote {output}: 3 stimuli\n")
