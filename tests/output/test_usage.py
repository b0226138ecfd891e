"""Mistakes in an option are reported in the user's words, with the option's whole name."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

import jsonargparse
import pytest
from jsonargparse.typing import (
    ClosedUnitInterval,
    PositiveFloat,
    PositiveInt,
)

from headstart.datamodules import CatsAndDogs, PhotoSource
from headstart.output.errors import UsageError
from headstart.output.parser import OneLineErrorParser

SEQUENCE = "while parsing a flow sequence at line 1, column 8"
BROKEN_FILE = f"{SEQUENCE}, expected ',' or ']', but got '<stream end>' at line 1, column 13"
BROKEN = f"{SEQUENCE}, did not find expected ',' or ']' at line 2, column 1"


OF_TYPES: list[tuple[list[str], str]] = [
    (["--team=green"], "team: expected one of blue, red, not green"),
    (["--layers=fc"], "layers: expected a list, written '[a, b]', not fc"),
    (["--sizes=[1, x]"], "sizes: expected a whole number, not [1, 'x']"),
    (["--formats=[png, jpg]"], "formats: expected one of png, pdf, not jpg"),
    (["--photos.mine=cats"], "photos.mine: there is no PhotoSource 'cats'"),
    (["--count=0"], "count: expected a whole number from 1, not 0"),
    (["--part=1.5"], "part: expected a number from 0 to 1, not 1.5"),
    (["--rate=nan"], "rate: expected a number above 0, not nan"),
    (["--mapping={a: ["], "mapping: expected a mapping, written '{a: b}', not {a: ["),
    (["--flag=perhaps"], "flag: expected true or false, not perhaps"),
    (["--mapping=3"], "mapping: expected a mapping, written '{a: b}', not 3"),
    (["--word=3"], "word: expected one of 1, 2, auto, not 3"),
    (["stray"], "'stray' is no option; options are written --name=value"),
    (["--config=inner"], "config: Path is not a file: '{folder}/inner'"),
    (["--config=broken.yaml"], f"config: broken.yaml cannot be read ({BROKEN_FILE})"),
    (["--flag"], "flag: expected a value, written --flag=VALUE"),
    (["--count=true"], "count: expected a whole number from 1, not true"),
    (["--three=[1, 2]"], "three: expected a list, written '[a, b]', not [1, 2]"),
    (["--config=list.yaml"], "config: expected a mapping of options in list.yaml, such as 'data: ...'"),
]


def test_types_are_reported_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def command(
        team: Literal["blue", "red"] | None = None,
        layers: list[str] | None = None,
        sizes: list[int] | None = None,
        formats: list[Literal["png", "pdf"]] = ["png"],  # noqa: B006 - a default of the command line
        photos: dict[str, PhotoSource] = {},  # noqa: B006 - a default of the command line
        count: PositiveInt | None = None,
        part: ClosedUnitInterval = 1.0,
        flag: bool | None = None,
        mapping: dict[str, int] | None = None,
        word: Literal[1, 2] | Literal["auto"] = 1,
        three: tuple[float, float, float] = (1.0, 1.0, 1.0),
        rate: PositiveFloat = 1.0,
    ) -> None:
        pytest.fail("it should not run")

    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.yaml").write_text("[1, 2]")
    (tmp_path / "inner").mkdir()
    (tmp_path / "broken.yaml").write_text("sizes: [1, 2")
    found = [(mistake(command, *options), message.replace("{folder}", str(tmp_path))) for options, message in OF_TYPES]
    wrong = [pair for pair in found if pair[0] != pair[1]]
    assert not wrong, wrong


SOURCE, HERE = "headstart.datamodules.CatsAndDogs", "headstart.tests.output.test_usage"

NO_SOURCE = "is no PhotoSource; name one, or a function that is annotated with -> PhotoSource"


def unsaid():  # type: ignore[no-untyped-def]  # noqa: ANN201 - what is tested
    """Return a source without its flag."""
    return CatsAndDogs()


bound = partial(CatsAndDogs, download=True)


SEEDS = "expected a whole number from 0 to 4294967295"
FOLDERS = "headstart.datamodules.UnsplitClassFolders"
# What is typed, and the message; CATS is the path of a source.
OF_CLASSES = {
    "": "targets: it is required, and not given; configuration files are given by --config",
    "--targets.pets=CATS --targets.pets.roto=x": "targets.pets.roto: there is no such option of CATS (closest: "
    "targets.pets.root)",
    f"--targets.pets={FOLDERS} --targets.pets.init_args.split_seed=x": f"targets.pets.split_seed: {SEEDS}, not x",
    "--targets.pets=headstart.datamodules.CatsAndDog": "targets.pets: headstart.datamodules.CatsAndDog cannot be "
    "imported: module 'headstart.datamodules' has no attribute 'CatsAndDog' (closest: CATS)",
    "--targets.pets=headstart.modules.Replay": f"targets.pets: headstart.modules.Replay {NO_SOURCE}",
    "--targets.pets=nowhere.Pets": "targets.pets: nowhere.Pets cannot be imported: No module named 'nowhere' "
    "(closest: headstart.datamodules.DrawnPets)",
    f"--one={FOLDERS} --one.root=a --one.split_seed=null": f"one.split_seed: {SEEDS}, not null",
    "--one=CATS --one.download=null": "one.download: expected true or false, not null",
    "--one=headstart.datamodules.ClassSubset --one.source=null": "one.source: expected a PhotoSource by its import "
    "path, not null",
    f"--targets.mine={FOLDERS} --targets.mine.root=null": "targets.mine.root: expected a text, not null",
    f"--one={FOLDERS}": "one.root: it is required, and not given",
    "--one=NoSource": "one: there is no PhotoSource 'NoSource'",
    "--one.help=headstart.modules.Replay": f"one.help: headstart.modules.Replay {NO_SOURCE}",
    "--one=broken.yaml": f"one: broken.yaml cannot be read ({BROKEN})",
    f"--make={HERE}.unsaid": f"make: {HERE}.unsaid {NO_SOURCE}",
    f"--make={HERE}.bound": f"make: {HERE}.bound {NO_SOURCE}",
    "--one=3": "one: expected a PhotoSource by its import path, not 3",
}


def test_mistakes_in_classes_name_the_whole_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def command(
        targets: dict[str, PhotoSource], one: PhotoSource | None = None, make: Callable[[], PhotoSource] = CatsAndDogs
    ) -> None:
        pytest.fail("it should not run")

    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.yaml").write_text("sizes: [1, 2")
    wrong = []
    for typed, message in OF_CLASSES.items():
        needed = [] if "--targets" in typed or not typed else ["--targets={}"]
        found = mistake(command, *needed, *typed.replace("CATS", SOURCE).split())
        if found != message.replace("CATS", SOURCE):
            wrong.append((found, message))
    assert not wrong, wrong


def mistake(command: Callable[..., None], *options: str) -> str:
    """Return the error message of a command that is called with wrong options."""
    run = partial(jsonargparse.auto_cli, command, as_positional=False, parser_class=OneLineErrorParser)
    with pytest.raises(UsageError) as caught:
        run(args=list(options))
    return str(caught.value)
