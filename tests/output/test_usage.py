"""What is wrong with an option is said in the user's words, with the option's whole name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

import jsonargparse
import pytest
from jsonargparse.typing import ClosedUnitInterval, PositiveInt

from headstart.datamodules import PhotoSource
from headstart.output.errors import UsageError
from headstart.output.parser import OneLineErrorParser


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--team=green"], "team: expected one of blue, red, not green"),
        (["--only=gpu"], "only: expected one of auto, cpu, not gpu"),
        (["--layers=fc"], "layers: expected a list, written '[a, b]', not fc"),
        (["--names=fc"], "names: expected a list, written '[a, b]', not fc"),
        (["--sizes=[1, x]"], "sizes: expected a whole number, not [1, 'x']"),
        (["--count=0"], "count: expected a whole number (v>0), not 0"),
        (["--count=few"], "count: expected a whole number, not few"),
        (["--part=2"], "part: expected a number (v>=0 and v<=1), not 2"),
        (["--share=most"], "share: expected a number or one of all, not most"),
        (["--flag=perhaps"], "flag: expected true or false, not perhaps"),
        (["--mapping=3"], "mapping: expected a mapping, written '{a: b}', not 3"),
        (["--word=3"], "word: expected one of 1, 2, auto, not 3"),
        (["--flagg=1"], "flagg: there is no such option (closest: flag)"),
        (["--nothing_like_it"], "nothing_like_it: there is no such option"),
        (["stray"], "'stray' is no option; options are written --name=value"),
        (["--config=absent.yaml"], "config: there is no file '{folder}/absent.yaml'"),
        (["--flag"], "flag: expected one argument"),
        (["--count=true"], "count: expected a whole number, not true"),
        (["--three=[1, 2]"], "three: expected a list of 3, written '[a, b, ...]', not [1, 2]"),
        (["--config=list.yaml"], "config: expected a mapping of options in list.yaml, such as 'data: ...'"),
        (["--config=empty.yaml"], "config: expected a mapping of options in empty.yaml, such as 'data: ...'"),
    ],
)
def test_types_are_said_in_words(
    options: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def command(
        team: Literal["blue", "red"] | None = None,
        only: Literal["auto", "cpu"] = "auto",
        layers: list[str] | None = None,
        names: list[str] = [],  # noqa: B006 - a default of the command line
        sizes: list[int] | None = None,
        count: PositiveInt | None = None,
        part: ClosedUnitInterval = 1.0,
        share: float | Literal["all"] = "all",
        flag: bool | None = None,
        mapping: dict[str, int] | None = None,
        word: Literal[1, 2] | Literal["auto"] = 1,
        three: tuple[float, float, float] = (1.0, 1.0, 1.0),
    ) -> None:
        pytest.fail("it should not run")

    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.yaml").write_text("[1, 2]")
    (tmp_path / "empty.yaml").touch()
    assert mistake(command, *options) == message.replace("{folder}", str(tmp_path))


SOURCE = "headstart.datamodules.CatsAndDogs"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "targets: it is required, and not given; configuration files are given by --config"),
        (
            [f"--targets.pets={SOURCE}", "--targets.pets.roto=x"],
            f"targets.pets.roto: there is no such option of {SOURCE} (closest: targets.pets.root)",
        ),
        (
            [f"--targets.pets={SOURCE}", "--targets.pets.init_args.split_seed=x"],
            "targets.pets.split_seed: expected a whole number, not x",
        ),
        (
            ["--targets.pets=headstart.datamodules.CatsAndDog"],
            f"targets.pets: there is no headstart.datamodules.CatsAndDog (closest: {SOURCE})",
        ),
        (["--targets.pets=headstart.modules.Replay"], "targets.pets: headstart.modules.Replay is no PhotoSource"),
        (
            ["--targets.pets=headstart.datamodules.Photos"],
            "targets.pets: headstart.datamodules.Photos is abstract, name a class of its kind",
        ),
        (
            ["--targets.pets=nowhere.Pets"],
            "targets.pets: nowhere.Pets cannot be imported: no module 'nowhere' is installed or in this folder",
        ),
        (["--one=CatsAndDoggs"], f"one: expected a class by its import path (closest: {SOURCE}), not CatsAndDoggs"),
        ([f"--one={SOURCE}", "--one.split_seed=null"], "one.split_seed: expected a whole number, not null"),
        ([f"--one={SOURCE}", "--one.download=null"], "one.download: expected true or false, not null"),
        (
            ["--one=headstart.datamodules.ClassSubset", "--one.source=null"],
            "one.source: expected a PhotoSource by its import path, not null",
        ),
        (
            ["--targets.mine=headstart.datamodules.UnsplitClassFolders"],
            "targets.mine.root: it is required, and not given",
        ),
        (
            ["--targets.mine=headstart.datamodules.UnsplitClassFolders", "--targets.mine.root=null"],
            "targets.mine.root: expected a text, not null",
        ),
        (["--one=headstart.datamodules.UnsplitClassFolders"], "one.root: it is required, and not given"),
        (["--one=3"], "one: expected a class by its import path, not 3"),
        (["--one=headstart.datamodules.CatsAndDogs", "--one.root"], "one: expected one argument"),
    ],
)
def test_mistakes_in_classes_name_the_whole_option(options: list[str], message: str) -> None:
    def command(targets: dict[str, PhotoSource], one: PhotoSource | None = None) -> None:
        pytest.fail("it should not run")

    given = options if "--targets" in "".join(options) or not options else ["--targets={}", *options]
    assert mistake(command, *given) == message


def mistake(command: Callable[..., None], *options: str) -> str:
    """Give what a command says that is called with wrong options."""
    run = partial(jsonargparse.auto_cli, command, as_positional=False, parser_class=OneLineErrorParser)
    with pytest.raises(UsageError) as caught:
        run(args=list(options))
    return str(caught.value)
