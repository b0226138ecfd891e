"""An option's name stands once before a mistake, by whoever knows it."""

from __future__ import annotations

import pytest

from headstart.output.errors import UserError, naming


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("root: there is no folder 'x'", "data.photos.root: there is no folder 'x'"),
        ("split.seed: -1", "data.photos.split.seed: -1"),
        ("model 'a': unknown", "data.photos: model 'a': unknown"),
        ("no photo: none", "data.photos: no photo: none"),
    ],
)
def test_name_is_joined_to_the_argument(message: str, expected: str) -> None:
    with pytest.raises(UserError) as caught, naming("data"), naming("photos"):
        raise UserError(message)
    assert str(caught.value) == expected


def test_other_errors_pass_as_they_are() -> None:
    with pytest.raises(KeyError), naming("data"):
        dict[str, int]()["root"]
