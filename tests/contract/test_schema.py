"""Entries and identifiers under the contract: the allowed and the rejected ones, and the pointers to problems."""

import copy
import string
import sys
import unicodedata
from typing import Any

from pydantic import TypeAdapter

from headstart.contract import versions
from headstart.contract.names import canonical_name, canonical_stimulus
from headstart.contract.problems import Problem
from headstart.contract.schema import CATALOG_LINE, ModelEntry, Stimulus, check_document
from headstart.contract.versions import VERSIONS, json_schemas

# The contract's own example.
RESNET50: dict[str, Any] = {
    "model_name": "resnet50",
    "source": "torchvision",
    "weights": "IMAGENET1K_V2",
    "layer": "fc",
    "embedding": "flatten",
    "input_size": [224, 224],
    "preprocess": {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225], "resize": 256, "crop": 224},
    "output_dim": 2048,
}
ENTRY: TypeAdapter[ModelEntry] = TypeAdapter(ModelEntry)
PLAIN_ENTRY: TypeAdapter[ModelEntry] = TypeAdapter(versions.ModelEntry)


def changed(path: str, value: Any) -> dict[str, Any]:
    entry = copy.deepcopy(RESNET50)
    *parents, name = path.split(".")
    target = entry
    for parent in parents:
        target = target[parent]
    target[name] = value
    return entry


def one_problem(document: Any, adapter: TypeAdapter[Any] = ENTRY) -> Problem:
    checked, problems = check_document(document, adapter)
    assert checked is None
    (problem,) = problems
    for word in ("pydantic", "Input", "http", "uple", "tag"):
        assert word not in problem.rule
    return problem


def test_optional_fields() -> None:
    optional = {"model_parameters": {"width": [1, None]}, "forward_args": {"pre_logits": True}, "notes": "as published"}
    entry = ModelEntry.model_validate({**RESNET50, **optional, "weights": None})
    assert (entry.weights, entry.input_size, entry.preprocess.interpolation) == (None, (224, 224), "bilinear")
    assert {name: getattr(entry, name) for name in optional} == optional
    assert ModelEntry.model_validate(changed("preprocess.interpolation", "bicubic"))
    assert ModelEntry.model_validate(changed("preprocess.mean", [0, 0, 0])), "whole numbers are numbers"


def test_fields_that_may_be_null_or_left_out() -> None:
    whole = ModelEntry.model_validate(RESNET50)
    assert (whole.model_parameters, whole.forward_args, whole.notes) == ({}, {}, "")
    for field in ("model_parameters", "forward_args", "notes"):
        assert ModelEntry.model_validate({**RESNET50, field: None}) == whole
        for version in VERSIONS:
            forms = json_schemas(version)["model_registry"]["$defs"]["ModelEntry"]["properties"][field]["anyOf"]
            assert {"type": "null"} in forms
    for field in RESNET50:
        without = {name: value for name, value in RESNET50.items() if name != field}
        is_optional = field in ("input_size", "output_dim")
        # They may be left out since version 1.1.
        for adapter in [PLAIN_ENTRY] if is_optional else [PLAIN_ENTRY, ENTRY]:
            assert one_problem(without, adapter) == Problem(f"/{field}", "", "is required")
        if is_optional:
            assert ModelEntry.model_validate(without).model_copy(update={"output_dim": 2048}) == whole


# A changed field, its value, and what the only problem says; the schemas that are shipped have all limits.
WRONG: list[tuple[str, Any, str]] = [
    ("model_name", "", "must not be empty"),
    ("model_name", "vit[/b]", "no square brackets"),
    ("model_name", 7, "must be a valid string"),
    ("source", "keras", "'torchvision', 'timm', 'open_clip' or 'custom'"),
    ("input_size", [224], "is required"),
    ("input_size", None, "must be a list"),
    ("input_size", [224.0, 224], "must be a valid integer"),
    ("input_size", [224, 192], "crop 224 must be both sides of input_size, [224, 192]"),
    ("preprocess", [], "must be an object"),
    ("preprocess.crop", 257, "must not be larger than resize, 256"),
    ("preprocess.std", [0.2, float("inf"), 0.2], "finite number"),
    ("preprocess.mean", [0.2, "0.2", 0.2], "must be a valid number"),
    ("preprocess.scale", 1, "is not a field of the contract"),
    ("output_dim", 0, "greater than or equal to 1"),
    ("output_dim", None, "must be a valid integer"),
    ("model_parameters", {"d\u0435pth": 3}, "must be the name of an argument"),
    ("forward_args", {"": 3}, "must be the name of an argument"),
    ("notes", "x" * 10_001, "at most 10000 characters"),
]


def test_wrong_entries() -> None:
    wrong = []
    for path, value, words in WRONG:
        for adapter in (ENTRY, PLAIN_ENTRY):
            problem, pointer = one_problem(changed(path, value), adapter), "/" + path.replace(".", "/")
            is_there = problem.pointer.startswith(pointer) or (problem.pointer, path) == ("/preprocess", "input_size")
            if words not in problem.rule or not is_there:
                wrong.append((path, value, problem))
    assert not wrong, wrong


def test_no_character_that_is_not_seen_is_part_of_a_name_or_path() -> None:
    """The characters of the patterns are those of Unicode's categories."""
    unseen = [chr(i) for i in range(sys.maxunicode + 1) if unicodedata.category(chr(i)) in {"Cc", "Cf", "Zl", "Zp"}]
    assert len(unseen) > 200
    for character in unseen:
        for path in ("model_name", "layer", "weights", "notes"):
            assert check_document(changed(path, f"a{character}b"), ENTRY)[1], (path, character)
        assert check_document({"dataset_name": "d", "image_identifier": f"a{character}b"}, CATALOG_LINE)[1], character


def test_identifiers_of_all_short_spellings() -> None:
    """The pattern agrees with the rule in plain code on every text of up to four characters of an alphabet."""

    def allowed(text: str) -> bool:
        drive = text[:1] in tuple(string.ascii_letters) and text[1:2] == ":"
        return not drive and "\\" not in text and not {"", ".", ".."} & set(text.split("/"))

    examples = ("test/bear/image_0007.png", "val/n03445777/ILSVRC2012_val_00003572.JPEG")
    for identifier in (*examples, ".hidden/..a/...", "1:2", "ab:c", "~a b/é😀", "x" * 1024):
        assert Stimulus(dataset_name="d", image_identifier=identifier).image_identifier == identifier
    for identifier in ("/etc/passwd", "a\n", "\x1b[31m", "nul\0", "a\u202egnp.exe", "\ufeffa", "a\u2029"):
        problem = one_problem({"dataset_name": "d", "image_identifier": identifier}, CATALOG_LINE)
        assert (problem.pointer, problem.rule[:29]) == ("/image_identifier", "must be a plain relative path")
    texts = [""]
    for _ in range(4):
        texts = [*texts, *{text + c for text in texts for c in "a./:\\é"}]
    for text in set(texts) - {""}:
        assert (check_document({"dataset_name": "d", "image_identifier": text}, CATALOG_LINE)[1] == []) == allowed(
            text
        ), text


def test_spellings_of_one_name() -> None:
    for one, other in (
        ("resnet50", "ResNet50"),
        ("caf\u00e9", "cafe\u0301"),
        ("straße", "STRASSE"),
        ("ﬁne", "FINE"),
        ("\u212b", "\u00e5"),
        ("Σίσυφος", "ΣΊΣΥΦΟΣ"),
        # U+0345 is moved by normalisation and changed by case folding: both must come twice.
        ("\u1fb7", "\u03b1\u0342\u03b9"),
    ):
        assert one != other
        assert canonical_name(one) == canonical_name(other)
    names = ["resnet50", "resnet_50", "resnet101", "é", "e", "ı", "i", ""]
    assert len({canonical_name(name) for name in names}) == len(names)
    for spelling in ("./a/b", "a//b", "a/./b", "a/c/../b", "a\\b", "a/b/", "\uff41/b"):
        assert canonical_stimulus("D", spelling) == canonical_stimulus("d", "a/b")
        assert canonical_stimulus("d", spelling) != canonical_stimulus("d", "A/b")
