"""Some classes of a data set, numbered again."""

from pathlib import Path

import pytest

from headstart.datamodules.photos.class_folders import ClassFolders
from headstart.datamodules.photos.class_subset import ClassSubset
from headstart.tests.material.photo_folders import lay_out, refusal


@pytest.fixture
def farm(tmp_path: Path) -> ClassFolders:
    splits, kinds = ("train", "validation"), ("ant", "bee", "cow")
    names = [f"{split}/{kind}/{number}.jpg" for split in splits for kind in kinds for number in range(2)]
    lay_out(tmp_path / "farm", *names)
    for name in names:
        (tmp_path / "farm" / name).write_text(name)
    return ClassFolders(str(tmp_path / "farm"))


def test_classes_are_numbered_in_the_order_given(farm: ClassFolders) -> None:
    source = ClassSubset(farm, ["cow", "ant"])
    train, validation = source.train(), source.validation()
    assert source.name == "farm, cow and ant"
    assert train.classes == ("cow", "ant")
    assert list(train.names) == ["train/ant/0.jpg", "train/ant/1.jpg", "train/cow/0.jpg", "train/cow/1.jpg"]
    assert train.labels.tolist() == [1, 1, 0, 0]
    assert list(validation.names)[2:] == ["validation/cow/0.jpg", "validation/cow/1.jpg"]
    orders = (["cow", "ant"], ["ant", "cow"], ["ant", "bee"], ["ant", "bee", "cow"])
    prints = [ClassSubset(farm, order).train().fingerprint() for order in orders]
    assert len({*prints}) == 4
    assert farm.train().fingerprint() == prints[3]


def test_mistakes(farm: ClassFolders) -> None:
    source = ClassSubset(farm, ["ant", "ant", "bee"])
    message = refusal(source.prepare, source.train, source.validation, source.both, start="classes: ")
    assert message.endswith("two or more are needed, none of them twice")
    message = "classes: dog, cat not in farm, whose classes are ant, bee, cow"
    assert refusal(ClassSubset(farm, ["ant", "dog", "cat"]).train) == message
