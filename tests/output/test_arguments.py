"""Arguments as users write them reach the parser as it reads them."""

from pathlib import PurePath

import pytest

from headstart.output.arguments import as_arguments
from headstart.output.parser import OneLineErrorParser


def parse(*args: str) -> list[str]:
    parser = OneLineErrorParser()
    parser.add_argument("runs", type=str | list[str])
    parser.add_argument("--overwrite", type=bool, default=False)
    parser.add_argument("--top_k", type=int)
    parser.add_argument("--make", type=list[str])
    return parser.plain_arguments(args)


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ([], []),
        (["--overwrite", "a"], ["--overwrite=true", "a"]),
        (["--overwrite", "False", "a"], ["--overwrite=False", "a"]),
        (["--top_k", "-3"], ["--top_k=-3"]),
        (["--where.a-b", "c-d"], ["--where.a-b=c-d"]),
        (["--help", "a"], ["--help", "a"]),
        (["--make", "a", "b", "--overwrite"], ['--make=["a", "b"]', "--overwrite=true"]),
        (["a", "b", "--top_k", "3"], ["--top_k=3", '["a", "b"]']),
        (["--top_k=9", "--", "a"], ["--top_k=9", "--", "a"]),
        (["a", "--", "--b"], ["--", '["a", "--b"]']),
    ],
)
def test_switches_lists_and_dashes(args: list[str], expected: list[str]) -> None:
    assert parse(*args) == expected


def test_options_from_python_are_written_for_a_parser() -> None:
    assert as_arguments({"a.b": 8, "c": "text", "d": {"e": None}}) == ["--a.b=8", "--c=text", '--d={"e": null}']
    assert as_arguments({"a": PurePath("b/c"), "d": [PurePath("e")]}) == ["--a=b/c", '--d=["e"]']
