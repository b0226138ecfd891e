"""JSON from strangers is rejected unless every program would read it alike and in little time."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from headstart.contract.problems import ContractError, Problem, join_pointer, short_json
from headstart.contract.untrusted_json import MAX_DEPTH, parse_json, read_limited


def problems_of(content: str | bytes) -> list[Problem]:
    with pytest.raises(ContractError) as caught:
        parse_json(content.encode() if isinstance(content, str) else content, "document")
    return caught.value.problems


def test_clean_json_is_read_as_the_library_reads_it() -> None:
    # Brackets side by side or in a text are no nesting.
    brackets: list[Any] = [[], {}] * 100 + ["[" * 100, '"[[[' * 50, "\\" * 31]
    nested = {"a": [1, {"b": [None]}], "ä": "[[[{{{"}
    for value in (None, True, "", 'é 😀 \\ " \n', -(2**63), 2**63 - 1, 0.1, -1.5e300, [], {}, nested, brackets):
        for text in (json.dumps(value, ensure_ascii=False), json.dumps(value)):
            assert parse_json(text.encode(), "document") == value == json.loads(text)


# What is wrong, and the beginning of the only problem.
WRONG: dict[str | bytes, str] = {
    **dict.fromkeys(("{", "[1,]", "{'a': 1}", "nul", '{"a" 1}', '"open', "1 2", "[1] // no"), "is not JSON: "),
    **dict.fromkeys(('"\x01"', '{"a": 01}', "+1", ".5", b"\x00"), "is not JSON: "),
    **dict.fromkeys((b"", b" \n\t "), "is empty"),
    b'["\xff"]': "is not UTF-8: byte 2 is 0xff",
    b'["\xed\xa0\x80"]': "is not UTF-8: byte 2 is 0xed",
    '{"a": 1}'.encode("utf-16"): "is not UTF-8",
    "\ufeff{}": "starts with a byte order mark",
    "[NaN]": "has NaN, which is not a JSON number",
    "-Infinity": "has -Infinity, which is not",
    "-1e999": "has a number beyond the range of 64-bit floats, -1e999",
    str(2**63): f"has an integer beyond 64 bits, {2**63}",
    str(-(2**63) - 1): "has an integer beyond 64 bits",
    "9" * 5000: "has an integer beyond 64 bits",
    "0." + "1" * 5000: "has a number of more than 100 characters",
    '{"a": 1, "\\u0061": 2}': 'repeats the key "a" in one object',
    '{"a": {"b": [0, {"c": 1, "d": 0, "c": 2}]}}': 'repeats the key "c" in one object',
    '{"a": ["x\\udc00y"]}': 'holds half of a surrogate pair, "\\udc00"',
    '{"\\udfff": 1}': "holds half of a surrogate pair",
    # A parser of quadratic time would not end.
    "[" * 900_000: "is nested deeper than the limit of 32 levels",
    '{"a":' * 180_000: "is nested deeper",
    '["' + '\\"' * 450_000: "is not JSON",
    "[" * 33 + '"\\' * 450_000: "is not JSON",
    "9" * 900_000: "has an integer beyond 64 bits",
    "1" * 900_000 + ".0": "has a number of more than 100 characters",
}


def test_what_is_no_json() -> None:
    wrong = []
    for content, words in WRONG.items():
        problems = problems_of(content)
        if len(problems) != 1 or not problems[0].rule.startswith(words) or not str(problems[0]).isascii():
            wrong.append((content[:40], problems, words))
    assert not wrong, wrong
    assert "line 1, column " in problems_of("{")[0].rule


def test_nesting_up_to_the_limit() -> None:
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        parse_json((opening * MAX_DEPTH + "0" + closing * MAX_DEPTH).encode(), "document")
        problems_of(opening * (MAX_DEPTH + 1) + "0" + closing * (MAX_DEPTH + 1))


def test_only_regular_files_of_a_limited_size_are_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345678")
    assert read_limited(path, 8, "document") == b"12345678"
    with pytest.raises(ContractError, match=r"^document: 1 problem: is larger than the limit of 7 bytes$"):
        read_limited(path, 7, "document")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(2**40)
    cases = {
        tmp_path / "huge": "is larger than the limit of 1,000,000 bytes",
        tmp_path / "absent": "there is no such file",
        tmp_path: "is not a regular file",
        tmp_path / "nul\0": "cannot be read",
        tmp_path / ("x" * 300): "cannot be read: File name too long",
    }
    if sys.platform != "win32":
        os.mkfifo(tmp_path / "pipe")
        cases |= dict.fromkeys((tmp_path / "pipe", Path("/dev/zero")), "is not a regular file")
    for path, words in cases.items():
        with pytest.raises(ContractError, match=words):
            read_limited(path, 1_000_000, "document")


def test_shown_values_are_short_and_hold_nothing_that_a_terminal_obeys() -> None:
    values: list[Any] = ["\x1b[31m\x07", "\u202e\u2028", "\x7f\x9b", "\ud800", {"\x1b": "\r\n"}]
    for text in (show for value in values for show in (short_json(value), join_pointer([str(value)]))):
        assert text.isascii()
        assert text.isprintable()
    assert short_json("x" * 78) == '"' + "x" * 78 + '"'
    assert short_json("x" * 79) == '"' + "x" * 76 + "..."


def test_error_is_one_line_that_lists_five_problems() -> None:
    problems = [Problem(f"/{i}", "0", "is wrong") for i in range(7)]
    assert str(ContractError("submission a\nb\x1b.json", problems[:1])) == (
        "submission a\\nb\\x1b.json: 1 problem: /0 0: is wrong"
    )
    text = str(ContractError("submission", problems))
    assert text.startswith("submission: 7 problems: /0 0: is wrong; /1 0: is wrong; ")
    assert text.endswith("/4 0: is wrong; and 2 more")
