"""Stimuli are found below the roots of their datasets, and nowhere else."""

import os
from pathlib import Path

import pytest

from headstart.contract.problems import ContractError, Problem
from headstart.contract.schema import Stimulus
from headstart.contract.stimulus_files import locate_stimuli

COMMON = "HACKATHON_DATASET_ROOT"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set the common root, with a dataset `photos` in it and a file outside of it."""
    for name in [name for name in os.environ if name.startswith(COMMON)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv(COMMON, str(tmp_path / "roots"))
    photos = tmp_path / "roots" / "photos"
    for name in ("a.png", "deep/er/b.png"):
        (photos / name).parent.mkdir(parents=True, exist_ok=True)
        (photos / name).write_text(name)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    return photos


def stimuli(*identifiers: str, dataset: str = "photos") -> list[Stimulus]:
    return [Stimulus(dataset_name=dataset, image_identifier=identifier) for identifier in identifiers]


def problems_of(chosen: list[Stimulus]) -> list[Problem]:
    with pytest.raises(ContractError, match=r"^stimuli: \d+ problems?: ") as caught:
        locate_stimuli(chosen)
    return caught.value.problems


def test_root_of_one_dataset_wins(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert locate_stimuli([]) == []
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "c.png").touch()
    monkeypatch.setenv(f"{COMMON}_CIFAR_100_V1", str(folder))
    both = [*stimuli("c.png", dataset="cifar-100.v1"), *stimuli("deep/er/b.png", "a.png", "deep/er/b.png")]
    assert locate_stimuli(both) == [folder / "c.png", root / "deep/er/b.png", root / "a.png", root / "deep/er/b.png"]
    monkeypatch.delenv(COMMON)
    assert locate_stimuli(both[:1]) == [folder / "c.png"]
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for value in ("~/roots", "roots"):
        monkeypatch.setenv(COMMON, value)
        assert locate_stimuli(stimuli("a.png")) == [root / "a.png"]


def test_roots_that_are_not_set_or_no_folders(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A missing root hides no other problem.
    problems = problems_of([*stimuli("a.png", "b.png", dataset="drawings"), *stimuli("absent.png", "a.png")])
    assert [problem.value for problem in problems] == ['"drawings"', '"photos/absent.png"']
    where = f"there is no folder {root.parent / 'drawings'}, to which HACKATHON_DATASET_ROOT points"
    assert problems[0].rule == f"{where} (2 stimuli of data set drawings)"
    monkeypatch.setenv(f"{COMMON}_PHOTOS", str(root / "a.png"))
    assert "HACKATHON_DATASET_ROOT_PHOTOS points" in problems_of(stimuli("a.png"))[0].rule

    monkeypatch.setenv(COMMON, "")
    monkeypatch.setenv(f"{COMMON}_PHOTOS", "")
    problems = problems_of([*stimuli("a.png", "b.png"), *stimuli("c.png", dataset="other")])
    assert [problem.value for problem in problems] == ['"other"', '"photos"']
    rule = "to the dataset's folder, or HACKATHON_DATASET_ROOT to the folder of all datasets"
    assert problems[0].rule == f"set HACKATHON_DATASET_ROOT_OTHER {rule} (1 stimulus of data set other)"


def test_only_regular_files_are_read_and_every_missing_one_is_named(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "to_pipe").symlink_to("pipe")
    (root / "loop").symlink_to("loop")
    rules = {
        "absent.png": f"there is no file {root / 'absent.png'}",
        "no/folder/b.png": f"there is no file {root / 'no/folder/b.png'}",
        "a.png/c": "Not a directory",
        "x" * 300: "File name too long",
        "loop": "",
        **dict.fromkeys(("deep", "pipe", "to_pipe"), "is not a regular file"),
    }
    problems = problems_of(stimuli("a.png", *rules))
    assert [problem.value[:40] for problem in problems] == [f'"photos/{name}"'[:40] for name in rules]
    wrong = [problem for problem, words in zip(problems, rules.values(), strict=True) if words not in problem.rule]
    assert not wrong, wrong


def test_links_that_stay_within_the_root(root: Path) -> None:
    (root / "link.png").symlink_to("deep/er/b.png")
    (root / "absolute.png").symlink_to(root / "a.png")
    (root / "folder").symlink_to("deep", target_is_directory=True)
    (root / "deep" / "up.png").symlink_to("../a.png")
    (root.parent / "alias").symlink_to(root, target_is_directory=True)
    assert locate_stimuli(stimuli("a.png", dataset="alias")) == [root / "a.png"]
    paths = locate_stimuli(stimuli("link.png", "absolute.png", "folder/er/b.png", "deep/up.png", "folder/up.png"))
    assert [path.read_text() for path in paths] == ["deep/er/b.png", "a.png", "deep/er/b.png", "a.png", "a.png"]
    assert all(path == path.resolve() for path in paths)


def test_links_that_leave_the_root(root: Path, tmp_path: Path) -> None:
    sibling = tmp_path / "roots" / "photos_private"
    sibling.mkdir()
    (sibling / "a.png").touch()
    outside = tmp_path / "outside"
    (root / "absolute").symlink_to(outside / "secret")
    (root / "relative").symlink_to("../../outside/secret")
    (root / "chain").symlink_to("absolute")
    (root / "folder").symlink_to(outside, target_is_directory=True)
    (root / "deep" / "folder").symlink_to("../folder", target_is_directory=True)
    (root / "sibling").symlink_to(sibling / "a.png")
    names = ["absolute", "relative", "chain", "folder/secret", "deep/folder/secret", "sibling"]
    problems = problems_of(stimuli("a.png", *names))
    assert [problem.value for problem in problems] == [f'"photos/{name}"' for name in names]
    assert {problem.rule for problem in problems} == {f"a symbolic link leads out of the dataset's root {root}"}
