"""The script that lists a folder's pictures as a catalog."""

from pathlib import Path

import pytest

from headstart.__main__ import main
from headstart.contract.documents import read_catalog
from headstart.scripts.write_catalog import write_catalog


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b/2.png", "b/1.JPG", "a/3.webp", "a/notes.txt"):
        path = tmp_path / "birds" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path / "birds"


def test_lists_pictures_alone(folder: Path, tmp_path: Path) -> None:
    write_catalog(str(folder), str(tmp_path / "all.jsonl"))
    stimuli = read_catalog(tmp_path / "all.jsonl").stimuli
    assert [s.image_identifier for s in stimuli] == ["a/3.webp", "b/1.JPG", "b/2.png"]
    assert {s.dataset_name for s in stimuli} == {"birds"}


def test_sample_is_seeded(folder: Path, tmp_path: Path) -> None:
    files = []
    for seed in (0, 0, 1, 2, 3, 4):
        write_catalog(str(folder), str(tmp_path / "some.jsonl"), dataset_name="cubs", count=2, seed=seed)
        files.append((tmp_path / "some.jsonl").read_text())
    assert files[0] == files[1]
    assert len(set(files)) > 1
    assert all(text.count("cubs") == 2 for text in files)


def refusal(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    """Return the one line that the command fails with."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as caught:
        main(["write-catalog", *args])
    assert caught.value.code in {1, 2}
    printed = capsys.readouterr()
    (line,) = printed.err.splitlines()
    assert line.startswith("error: ")
    return line


def test_mistakes_are_one_line(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = f"--output={tmp_path / 'some.jsonl'}"
    assert "3 pictures, but 4 are needed" in refusal(capsys, str(folder), output, "--count=4")
    assert "0 pictures, but some are needed" in refusal(capsys, str(tmp_path / "absent"), output)
    assert "count" in refusal(capsys, str(folder), output, "--count=0")
    assert "(closest: count)" in refusal(capsys, str(folder), output, "--coutn=1")
    absent = str(tmp_path / "nope" / "x.jsonl")
    assert f"output: {absent!r} cannot be written: No such file or directory" in refusal(
        capsys, str(folder), f"--output={absent}"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["birds"]
    main(["write-catalog", str(folder), output, "--count=3"])
    assert capsys.readouterr().out.endswith(f"wrote {tmp_path / 'some.jsonl'}: 3 stimuli\n")


def test_catalog_that_breaks_the_contract_is_not_written(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "some.jsonl"
    output.write_text("as before")
    line = refusal(capsys, str(folder), f"--output={output}", "--dataset_name=my birds")
    assert line.startswith(f'error: stimuli catalog {output}: 3 problems: /dataset_name "my birds": line 1: must be')
    (folder / "b" / "caf\u00e9.jpg").touch()
    (folder / "b" / "cafe\u0301.jpg").touch()  # differs from another in its Unicode form alone
    assert "the same stimulus as in line" in refusal(capsys, str(folder), f"--output={output}")
    assert output.read_text() == "as before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["birds", "some.jsonl"]


def test_only_files_of_the_folder(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.png").touch()
    (folder / "folder.jpg").mkdir()
    (folder / "folder.jpg" / "c.gif").touch()
    (folder / "out.png").symlink_to(tmp_path / "secret.png")
    (folder / "broken.png").symlink_to(tmp_path / "absent.png")
    (folder / "within.png").symlink_to(folder / "b" / "2.png")
    (folder / "a\\b.png").touch()
    (tmp_path / "link").symlink_to(folder)
    for root in (folder, tmp_path / "link"):
        write_catalog(str(root), str(tmp_path / "all.jsonl"), dataset_name="birds")
        names = [s.image_identifier for s in read_catalog(tmp_path / "all.jsonl").stimuli]
        assert names == ["a/3.webp", "b/1.JPG", "b/2.png", "folder.jpg/c.gif", "within.png"]
