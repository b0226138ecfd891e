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


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        "",
        'é 😀 \\ " \n',
        0,
        -(2**63),
        2**63 - 1,
        0.1,
        -1.5e300,
        [],
        {},
        {"a": [1, {"b": [None]}], "ä": "[[[{{{"},
    ],
)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_clean_json_is_read_as_the_library_reads_it(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert parse_json(text.encode(), "document") == value == json.loads(text)


@pytest.mark.parametrize(
    "text", ["{", "[1,]", "{'a': 1}", "nul", '{"a" 1}', '"open', "1 2", "[1] // no", '"\x01"', '{"a": 01}', "+1", ".5"]
)
def test_not_json(text: str) -> None:
    (problem,) = problems_of(text)
    assert problem.pointer == problem.value == ""
    assert problem.rule.startswith("is not JSON: ")
    assert "line 1, column " in problem.rule


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"", "is empty"),
        (b" \n\t ", "is empty"),
        (b'["\xff"]', "is not UTF-8: byte 2 is 0xff"),
        (b'["\xed\xa0\x80"]', "is not UTF-8: byte 2 is 0xed"),
        (b'["\xc0\xaf"]', "is not UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "is not UTF-8"),
        ("\ufeff{}".encode(), "starts with a byte order mark"),
        (b"\x00", "is not JSON"),
    ],
)
def test_not_text(content: bytes, rule: str) -> None:
    (problem,) = problems_of(content)
    assert rule in problem.rule


@pytest.mark.parametrize(
    ("text", "pointers"),
    [
        ('{"a": 1, "a": 1}', ["/a"]),
        ('{"a": 1, "\\u0061": 2}', ["/a"]),
        ('{"a": {"b": [0, {"c": 1, "c": 2, "c": 3}]}, "d": 1, "d": 2}', ["/d", "/a/b/1/c"]),
        ('{"x/y~z": 1, "x/y~z": 2}', ["/x~1y~0z"]),
    ],
)
def test_duplicate_keys_at_every_level(text: str, pointers: list[str]) -> None:
    problems = problems_of(text)
    assert [problem.pointer for problem in problems] == pointers
    assert {problem.rule for problem in problems} == {"the key is repeated in one object"}


@pytest.mark.parametrize(
    ("number", "rule"),
    [
        ("NaN", "not a JSON number"),
        ("Infinity", "not a JSON number"),
        ("-Infinity", "not a JSON number"),
        ("1e999", "beyond the range of 64-bit floats"),
        ("-1e999", "beyond the range of 64-bit floats"),
        (str(2**63), "beyond 64 bits"),
        (str(-(2**63) - 1), "beyond 64 bits"),
        ("9" * 5000, "beyond 64 bits"),
        ("0." + "1" * 5000, "more than 100 characters"),
    ],
)
def test_numbers_out_of_bounds(number: str, rule: str) -> None:
    (problem,) = problems_of(f'{{"a": [0, {number}]}}')
    assert problem.pointer == "/a/1"
    assert problem.value[:10] == number[:10]
    assert len(problem.value) <= 80
    assert rule in problem.rule


def test_lone_surrogates_in_values_and_keys() -> None:
    problems = problems_of('{"a": ["\\ud800", "\\ud83d\\ude00", "x\\udc00y"], "\\udfff": 1}')
    assert [problem.pointer for problem in problems] == ["/a/0", "/a/2", "/\\udfff"]
    assert [problem.value for problem in problems] == ['"\\ud800"', '"x\\udc00y"', ""]
    assert all("surrogate" in problem.rule and str(problem).isascii() for problem in problems)


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_nesting(opening: str, closing: str) -> None:
    parse_json((opening * MAX_DEPTH + "0" + closing * MAX_DEPTH).encode(), "document")
    (problem,) = problems_of(opening * (MAX_DEPTH + 1) + "0" + closing * (MAX_DEPTH + 1))
    assert problem.rule == "is nested deeper than the limit of 32 levels"


def test_brackets_side_by_side_or_in_text_are_no_nesting() -> None:
    value: list[Any] = [[], {}] * 100 + ["[" * 100, '"[[[' * 50, "\\" * 31]
    assert parse_json(json.dumps(value).encode(), "document") == value


@pytest.mark.parametrize(
    "text",
    [
        "[" * 900_000,
        '{"a":' * 180_000,
        '["' + '\\"' * 450_000,
        "[" * 33 + '"\\' * 450_000,
        "9" * 900_000,
        "1" * 900_000 + ".0",
    ],
    ids=["lists", "objects", "escapes", "open texts", "digits", "digits of a float"],
)
def test_hostile_megabyte_is_refused_before_it_takes_time(text: str) -> None:
    # A parser of quadratic time would not end.
    assert len(problems_of(text)) == 1


def test_file_at_the_limit_is_read_and_one_byte_more_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345678")
    assert read_limited(path, 8, "document") == b"12345678"
    with pytest.raises(ContractError, match=r"^document: 1 problem: is larger than the limit of 7 bytes$"):
        read_limited(path, 7, "document")


def test_huge_file_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(ContractError, match="is larger than the limit of 1,000,000 bytes"):
        read_limited(tmp_path / "file", 1_000_000, "document")


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="there is no such file"):
        read_limited(tmp_path / "absent", 8, "document")
    with pytest.raises(ContractError, match="cannot be read: Is a directory"):
        read_limited(tmp_path, 8, "document")
    with pytest.raises(ContractError, match="cannot be read"):
        read_limited(tmp_path / "nul\0", 8, "document")
    with pytest.raises(ContractError, match="cannot be read: File name too long"):
        read_limited(tmp_path / ("x" * 300), 8, "document")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pipes and devices in the file system")
def test_pipes_and_devices_do_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(ContractError, match="is not a regular file"):
            read_limited(path, 8, "document")


@pytest.mark.parametrize("value", ["\x1b[31m\x07", "\u202e\u2028", "\x7f\x9b", "\ud800", {"\x1b": "\r\n"}])
def test_shown_values_hold_nothing_that_a_terminal_obeys(value: Any) -> None:
    for text in (short_json(value), join_pointer([str(value)])):
        assert text.isascii()
        assert text.isprintable()


def test_shown_values_are_short() -> None:
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
