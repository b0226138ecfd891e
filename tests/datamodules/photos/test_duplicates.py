"""Photos that are in both splits or in two classes are found by their content."""

from pathlib import Path

from headstart.datamodules import ClassFolders
from headstart.datamodules.photos.duplicates import count_once, find_duplicates


def duplicates(root: Path) -> list[list[str]]:
    source = ClassFolders(str(root))
    return find_duplicates(source.train(), source.validation())


def copy(root: Path, one: str, other: str) -> None:
    (root / other).write_bytes((root / one).read_bytes())


def test_copies_that_spoil(photo_folder: Path) -> None:
    # The second name is not UTF-8.
    copy(photo_folder, "train/dark/0.jpg", "validation/dark/copy.jpg")
    copy(photo_folder, "train/light/1.jpg", "train/dark/\udcff.jpg")
    assert duplicates(photo_folder) == [
        ["train/dark/0.jpg (training)", "validation/dark/copy.jpg (validation)"],
        ["train/dark/\udcff.jpg (training)", "train/light/1.jpg (training)"],
    ]


def test_copies_that_do_no_harm(photo_folder: Path) -> None:
    assert duplicates(photo_folder) == []
    # Files that cannot be decoded, and copies within a class of a split.
    for name in ("train/dark/broken.jpg", "train/light/broken.jpg", "validation/light/broken.jpg"):
        (photo_folder / name).write_bytes(b"no photo")
    copy(photo_folder, "train/dark/0.jpg", "train/dark/copy.jpg")
    assert duplicates(photo_folder) == []


def test_copies_in_one_class_are_counted_once(photo_folder: Path) -> None:
    before = ClassFolders(str(photo_folder)).train()
    once = count_once(before)
    assert once.photos is before
    assert once.repeated == once.in_several_classes == []
    for name in ("dark/zz.jpg", "dark/zz\udcff.jpg", "light/zz.jpg"):
        copy(photo_folder / "train", "dark/3.jpg", name)
    result = count_once(ClassFolders(str(photo_folder)).train())
    assert result.repeated == [[f"train/dark/{name}.jpg" for name in ("3", "zz", "zz\udcff")]]
    assert result.in_several_classes == [["train/dark/3.jpg", "train/light/zz.jpg"]]
    assert list(result.photos.names) == [*before.names, "train/light/zz.jpg"]
    assert result.photos.labels.tolist() == [*before.labels.tolist(), 1]
