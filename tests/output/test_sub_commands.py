"""Arguments as users write them and as parsers know them."""

from __future__ import annotations

import pytest

from headstart.output.errors import UsageError
from headstart.output.sub_commands import as_arguments, plain_arguments, switched_on, without_logger


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], []),
        (["--overwrite"], ["--overwrite=true"]),
        (["--overwrite", "--output", "x"], ["--overwrite=true", "--output", "x"]),
        (["--overwrite", "folder"], ["--overwrite=true", "folder"]),
        (["--overwrite", "False"], ["--overwrite", "False"]),
        (["--overwrite=false"], ["--overwrite=false"]),
    ],
)
def test_switches_need_no_value(given: list[str], expected: list[str]) -> None:
    assert switched_on(given, {"--overwrite"}) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["cka", "--top-k=3"], ["cka", "--top_k=3"]),
        (["cka", "--where.a-b=c-d"], ["cka", "--where.a-b=c-d"]),
        (["leaderboard", "a"], ["leaderboard", "a"]),
        (["leaderboard", "a", "b", "--output", "c"], ["leaderboard", '["a", "b"]', "--output", "c"]),
        (["leaderboard", "a", "--overwrite", "b"], ["leaderboard", '["a", "b"]', "--overwrite=true"]),
        (["leaderboard", "--threshold=0.9", "a", "b"], ["leaderboard", '["a", "b"]', "--threshold=0.9"]),
    ],
)
def test_several_folders_are_one_list_and_dashes_are_underscores(given: list[str], expected: list[str]) -> None:
    assert plain_arguments(given, {"leaderboard"}, {"--overwrite"}) == expected


def test_options_from_python_are_written_for_a_parser() -> None:
    assert as_arguments({"a.b": 8, "c": "text", "d": {"e": None}}) == ["--a.b=8", "--c=text", '--d={"e": null}']


@pytest.mark.parametrize("option", [["--logger=false"], ["--logger", "False"], []])
def test_a_command_that_mirrors_nothing_takes_no_logger(option: list[str]) -> None:
    given = ["leaderboard", *option, "a", "--output", "b"]
    assert without_logger("leaderboard", given) == ["leaderboard", "a", "--output", "b"]


@pytest.mark.parametrize(
    "option", [["--logger=true"], ["--logger", "true"], ["--logger"], ["--logger=false", "--logger="]]
)
def test_a_command_that_mirrors_nothing_is_not_asked_to(option: list[str]) -> None:
    with pytest.raises(
        UsageError, match=r"^logger: \w+ given, but leaderboard mirrors nothing .*; give false, or leave"
    ):
        without_logger("leaderboard", ["leaderboard", "a", *option])
