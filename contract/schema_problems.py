"""Check a parsed document against its model, and say what is wrong in the contract's words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

from pydantic import TypeAdapter, ValidationError

from contract.names import PATTERN_RULES
from contract.problems import Problem, join_pointer, short_json
from contract.schema import CONTRACT_VERSION, TAGS

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

T = TypeVar("T")

_RULES = {
    "missing": "is required",
    "extra_forbidden": "is not a field of the contract",
    "model_type": "must be an object",
    "dict_type": "must be an object",
    "tuple_type": "must be a list",
    "string_too_short": "must not be empty",
}


def check_document(document: object, adapter: TypeAdapter[T]) -> tuple[T | None, list[Problem]]:
    """Check a parsed document's types, fields and bounds, and give it typed, or None and all problems at once."""
    try:
        return adapter.validate_python(document), []
    except ValidationError as error:
        found = error.errors(include_url=False)
        return None, [_describe(detail) for detail in found if not _counts_valid_entries_alone(detail)]


def _counts_valid_entries_alone(detail: ErrorDetails) -> bool:
    """Tell whether a list is long enough, and only appears too short because of entries with problems of their own."""
    return detail["type"] == "too_short" and len(detail["input"]) >= detail["ctx"]["min_length"]


def describe_version(asked: object) -> Problem:
    """Refuse a document of another version of the contract, with a problem that names both."""
    value = short_json(asked)
    rule = f"contract version {value} is asked for, and the version here is {short_json(CONTRACT_VERSION)}"
    return Problem("/contract_version", value, rule)


def _describe(detail: ErrorDetails) -> Problem:
    place = [part for part in detail["loc"] if part not in TAGS]
    if place == ["contract_version"]:
        return describe_version(detail["input"])
    value = "" if detail["type"] == "missing" else short_json(detail["input"])
    return Problem(join_pointer(place), value, _rule(detail))


def _rule(detail: ErrorDetails) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "too_short":
        return f"must have at least {context['min_length']} items, not {len(detail['input'])}"
    if kind == "too_long":
        return f"must have at most {context['max_length']} items, not {len(detail['input'])}"
    if kind == "string_pattern_mismatch":
        return PATTERN_RULES[context["pattern"]]
    if kind == "union_tag_invalid":
        return f"must be {context['expected_tags'].replace(', ', ' or ')}".replace("'", "")
    if kind == "value_error":
        return str(context["error"])
    return _RULES.get(kind) or re.sub(r"^\w+ should ", "must ", detail["msg"])
