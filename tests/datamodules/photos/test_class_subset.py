"""Some classes of a data set, numbered again."""

from pathlib import Path

import pytest

from headstart.datamodules.photos.class_folders import ClassFolders
from headstart.datamodules.photos.class_subset import ClassSubset
from headstart.output.errors import UserError


def lay_out(root: Path) -> ClassFolders:
    for split in ("train", "validation"):
        for kind in ("ant", "bee", "cow"):
            for number in range(2):
                path = root / split / kind / f"{number}.jpg"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"{split} {kind} {number}")
    return ClassFolders(str(root))


def test_classes_are_numbered_in_the_order_given(tmp_path: Path) -> None:
    source = ClassSubset(lay_out(tmp_path / "farm"), ["cow", "ant"])
    train, validation = source.train(), source.validation()
    assert source.name == "farm, cow and ant"
    assert train.classes == ("cow", "ant")
    assert list(train.names) == ["train/ant/0.jpg", "train/ant/1.jpg", "train/cow/0.jpg", "train/cow/1.jpg"]
    assert train.labels.tolist() == [1, 1, 0, 0]
    assert list(validation.names)[2:] == ["validation/cow/0.jpg", "validation/cow/1.jpg"]


def test_fingerprints_of_selections_and_orders_are_distinct(tmp_path: Path) -> None:
    whole = lay_out(tmp_path)
    orders = (["ant", "bee"], ["bee", "ant"], ["ant", "cow"], ["ant", "bee", "cow"])
    prints = [ClassSubset(whole, order).train().fingerprint() for order in orders]
    assert len({*prints}) == 4
    assert whole.train().fingerprint() == prints[3]
    assert ClassSubset(lay_out(tmp_path), ["ant", "bee"]).train().fingerprint() == prints[0]
    (tmp_path / "train" / "bee" / "1.jpg").write_text("another photo")
    assert ClassSubset(whole, ["ant", "bee"]).train().fingerprint() != prints[0]


@pytest.mark.parametrize("classes", [[], ["ant"], ["ant", "ant", "bee"]])
def test_two_different_classes_are_needed(tmp_path: Path, classes: list[str]) -> None:
    source = ClassSubset(lay_out(tmp_path), classes)
    for call in (source.prepare, source.train, source.validation):
        with pytest.raises(UserError, match=r"^classes: .*two or more are needed, none of them twice"):
            call()


def test_unknown_class_is_named_with_those_there_are(tmp_path: Path) -> None:
    source = ClassSubset(lay_out(tmp_path / "farm"), ["ant", "dog", "cat"])
    expected = r"^classes: dog, cat not in farm, whose classes are ant, bee, cow$"
    with pytest.raises(UserError, match=expected):
        source.train()
