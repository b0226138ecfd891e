"""Mistakes in an option are reported in the user's words, with the option's whole name."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

import jsonargparse
import pytest
from jsonargparse.typing import (
    ClosedUnitInterval,
    PositiveInt,
)

from headstart.datamodules import CatsAndDogs, PhotoSource
from headstart.output.errors import UsageError
from headstart.output.parser import OneLineErrorParser

BROKEN = "while parsing a flow sequence at line 1, column 8, did not find expected ',' or ']' at line 2, column 1"


# What is typed, and the message.
OF_TYPES = {
    "--team=green": "team: expected one of blue, red, not green",
    "--layers=fc": "layers: expected a list, written '[a, b]', not fc",
    "--sizes=[1,x]": "sizes: expected a whole number, not [1, 'x']",
    "--count=0": "count: expected a whole number from 1, not 0",
    "--part=1.5": "part: expected a number from 0 to 1, not 1.5",
    "--flag=perhaps": "flag: expected true or false, not perhaps",
    "--mapping=3": "mapping: expected a mapping, written '{a: b}', not 3",
    "stray": "'stray' is no option; options are written --name=value",
    "--config=list.yaml": "config: expected a mapping of options in list.yaml, such as 'data: ...'",
    "--flag": "flag: expected a value, written --flag=VALUE",
}


def test_types_are_reported_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def command(
        team: Literal["blue", "red"] | None = None,
        layers: list[str] | None = None,
        sizes: list[int] | None = None,
        count: PositiveInt | None = None,
        part: ClosedUnitInterval = 1.0,
        flag: bool | None = None,
        mapping: dict[str, int] | None = None,
    ) -> None:
        pytest.fail("it should not run")

    monkeypatch.chdir(tmp_path)
    Path("list.yaml").write_text("[1, 2]")
    assert answers(command, OF_TYPES) == OF_TYPES


SOURCE, HERE = "headstart.datamodules.CatsAndDogs", "headstart.tests.output.test_usage"

NO_SOURCE = "is no PhotoSource; name one, or a function that is annotated with -> PhotoSource"


def unsaid():  # type: ignore[no-untyped-def]  # noqa: ANN201 - what is tested
    """Return a source without its flag."""
    return CatsAndDogs()


FOLDERS = "headstart.datamodules.UnsplitClassFolders"
SEEDS = "expected a whole number from 0 to 4294967295"
# CATS is the path of a source.
OF_CLASSES = {
    "": "targets: it is required, and not given",
    "--targets.pets=CATS --targets.pets.roto=x": "targets.pets.roto: there is no such option of CATS (closest: "
    "targets.pets.root)",
    f"--targets.pets={FOLDERS} --targets.pets.init_args.split_seed=x": f"targets.pets.split_seed: {SEEDS}, not x",
    "--targets.pets=headstart.datamodules.CatsAndDog": "targets.pets: headstart.datamodules.CatsAndDog cannot be "
    "imported: No headstart.datamodules attribute CatsAndDog (closest: CATS)",
    "--targets.pets=headstart.modules.Replay": f"targets.pets: headstart.modules.Replay {NO_SOURCE}",
    f"--targets={{}} --one={FOLDERS} --one.root=a --one.split_seed=null": f"one.split_seed: {SEEDS}, not null",
    f"--targets={{}} --one={FOLDERS}": "one.root: it is required, and not given",
    "--targets={} --one=broken.yaml": f"one: broken.yaml cannot be read ({BROKEN})",
    f"--targets={{}} --make={HERE}.unsaid": f"make: {HERE}.unsaid {NO_SOURCE}",
    "--targets={} --one=3": "one: expected a PhotoSource by its import path, not 3",
}


def test_mistakes_in_classes_name_the_whole_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def command(
        targets: dict[str, PhotoSource], one: PhotoSource | None = None, make: Callable[[], PhotoSource] = CatsAndDogs
    ) -> None:
        pytest.fail("it should not run")

    monkeypatch.chdir(tmp_path)
    Path("broken.yaml").write_text("sizes: [1, 2")
    expected = {typed.replace("CATS", SOURCE): message.replace("CATS", SOURCE) for typed, message in OF_CLASSES.items()}
    assert answers(command, expected) == expected


def answers(command: Callable[..., None], typed: Iterable[str]) -> dict[str, str]:
    """Return the error messages of a command that is called with wrong options."""
    messages = {}
    for options in typed:
        with pytest.raises(UsageError) as caught:
            jsonargparse.auto_cli(command, as_positional=False, parser_class=OneLineErrorParser, args=options.split())
        messages[options] = str(caught.value)
    return messages
