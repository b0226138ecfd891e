"""An option's name stands once before a mistake, by whoever knows it."""

from pathlib import Path

import pytest
import yaml

from headstart.output.errors import UserError, broken_yaml, prefix_errors, reason_of

PREFIXED = {
    "root: there is no folder 'x'": "data.photos.root: there is no folder 'x'",
    "split.seed: -1": "data.photos.split.seed: -1",
    "model 'a': unknown": "data.photos: model 'a': unknown",
    "no photo: none": "data.photos: no photo: none",
}
OF_SOME_BEGINNINGS = {
    "cache_dir: full": "data.cache_dir: full",
    "device: none": "data.device: none",
    "root: no": "root: no",
}


def test_name_is_joined_to_the_argument_of_all_messages_or_some() -> None:
    for message, expected in PREFIXED.items():
        with pytest.raises(UserError) as caught, prefix_errors("data"), prefix_errors("photos"):
            raise UserError(message)
        assert str(caught.value) == expected
    with pytest.raises(UserError, match=r"^photos: there is no"), prefix_errors("photos", single=True):
        raise UserError("root: there is no folder 'x'")
    for message, expected in OF_SOME_BEGINNINGS.items():
        with pytest.raises(UserError) as caught, prefix_errors("data", about=("cache_dir: ", "device: ")):
            raise UserError(message)
        assert str(caught.value) == expected


def test_reasons_have_no_names_of_libraries_or_numbers_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError) as caught:
        tmp_path.read_text()
    assert reason_of(caught.value) == "Is a directory"
    assert reason_of(OSError("of no number")) == "of no number"
    assert reason_of(ValueError("first\nsecond")) == "first"
    assert reason_of(KeyError()) == "KeyError"


BROKEN = {
    "data: [1, 2": "while parsing a flow sequence at line 1, column 7, expected ',' or ']', but got '<stream end>' at "
    "line 1, column 12",
    "a: *b": "found undefined alias 'b' at line 1, column 4",
    'a: "\x07"': "unacceptable character #x0007: special characters are not allowed at position 4",
}


def test_broken_yaml_is_reported_with_its_position() -> None:
    for text, expected in BROKEN.items():
        with pytest.raises(yaml.YAMLError) as caught:
            yaml.safe_load(text)
        assert broken_yaml(caught.value) == expected
