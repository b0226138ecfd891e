"""Entries and identifiers under the contract: the allowed and the rejected ones, and the pointers to problems."""

import copy
import string
import sys
import unicodedata
from typing import Any

import pytest
from pydantic import TypeAdapter

from headstart.contract import plain_forms
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
PLAIN_ENTRY: TypeAdapter[ModelEntry] = TypeAdapter(plain_forms.ModelEntry)
MAY_BE_LEFT_OUT = ("input_size", "output_dim")


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


def test_the_contracts_examples() -> None:
    entry = ModelEntry.model_validate(RESNET50)
    assert entry.input_size == (224, 224)
    assert entry.preprocess.std == (0.229, 0.224, 0.225)
    assert (entry.preprocess.interpolation, entry.model_parameters, entry.forward_args) == ("bilinear", {}, {})
    for dataset, identifier in [
        ("cifar100", "test/bear/image_0007.png"),
        ("imagenet1k", "val/n03445777/ILSVRC2012_val_00003572.JPEG"),
    ]:
        stimulus = Stimulus(dataset_name=dataset, image_identifier=identifier)
        assert (stimulus.dataset_name, stimulus.image_identifier) == (dataset, identifier)


def test_optional_fields() -> None:
    optional = {"model_parameters": {"width": [1, None]}, "forward_args": {"pre_logits": True}, "notes": "as published"}
    entry = ModelEntry.model_validate({**RESNET50, **optional, "weights": None})
    assert entry.weights is None
    assert {name: getattr(entry, name) for name in optional} == optional
    assert ModelEntry.model_validate(changed("preprocess.interpolation", "bicubic"))
    assert ModelEntry.model_validate(changed("preprocess.mean", [0, 0, 0])), "whole numbers are numbers"


@pytest.mark.parametrize("field", ["model_parameters", "forward_args", "notes"])
def test_null_is_an_optional_field_that_is_not_given(field: str) -> None:
    assert ModelEntry.model_validate({**RESNET50, field: None}) == ModelEntry.model_validate(RESNET50)
    for version in VERSIONS:
        forms = json_schemas(version)["model_registry"]["$defs"]["ModelEntry"]["properties"][field]["anyOf"]
        assert {"type": "null"} in forms


@pytest.mark.parametrize("field", RESNET50)
def test_every_required_field_is_required(field: str) -> None:
    without = {name: value for name, value in RESNET50.items() if name != field}
    assert one_problem(without, PLAIN_ENTRY) == Problem(f"/{field}", "", "is required")
    if field not in MAY_BE_LEFT_OUT:
        assert one_problem(without) == Problem(f"/{field}", "", "is required")


def test_fields_may_be_left_out_since_version_1_1() -> None:
    entry = ModelEntry.model_validate({name: RESNET50[name] for name in RESNET50 if name not in MAY_BE_LEFT_OUT})
    assert (entry.input_size, entry.output_dim) == ((224, 224), None)
    assert entry.model_copy(update={"output_dim": 2048}) == ModelEntry.model_validate(RESNET50)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("model_name", "", "must not be empty"),
        ("model_name", "x" * 257, "at most 256 characters"),
        ("model_name", "a\nb", "no control characters"),
        ("model_name", "vit[/b]", "no square brackets"),
        ("model_name", "vit\u202ebase", "no control characters"),
        ("model_name", "r\u0435snet50", "no letters but Latin ones"),
        ("model_name", "a  b", "only single spaces"),
        ("model_name", "a\u00a0b", "no signs beyond ASCII"),
        ("model_name", 7, "must be a valid string"),
        ("source", "keras", "'torchvision', 'timm', 'open_clip' or 'custom'"),
        ("weights", "", "must not be empty"),
        ("layer", "", "must not be empty"),
        ("layer", "fc\u200d", "no invisible ones"),
        ("embedding", "max", "'pool', 'cls', 'flatten' or 'mean'"),
        ("input_size", [224], "is required"),
        ("input_size", 224, "must be a list"),
        ("input_size", None, "must be a list"),
        ("input_size", [224.0, 224], "must be a valid integer"),
        ("input_size", [0, 224], "greater than or equal to 1"),
        ("input_size", [224, 192], "crop 224 must be both sides of input_size, [224, 192]"),
        ("preprocess", [], "must be an object"),
        ("preprocess.crop", 257, "must not be larger than resize, 256"),
        ("preprocess.std", [0.2, 0.0, 0.2], "greater than 0"),
        ("preprocess.std", [0.2, float("inf"), 0.2], "finite number"),
        ("preprocess.mean", [0.2, float("nan"), 0.2], "finite number"),
        ("preprocess.mean", [0.2, "0.2", 0.2], "must be a valid number"),
        ("preprocess.interpolation", "nearest", "'bilinear' or 'bicubic'"),
        ("preprocess.scale", 1, "is not a field of the contract"),
        ("output_dim", 0, "greater than or equal to 1"),
        ("output_dim", 10_000_001, "less than or equal to 10000000"),
        ("model_parameters", [], "must be an object"),
        ("model_parameters", {"d\u0435pth": 3}, "must be the name of an argument"),
        ("forward_args", {"": 3}, "must be the name of an argument"),
        ("notes", "x" * 10_001, "at most 10000 characters"),
        ("output_dim", None, "must be a valid integer"),
        ("hidden", 1, "is not a field of the contract"),
    ],
)
def test_wrong_entries(path: str, value: Any, words: str) -> None:
    for adapter in (ENTRY, PLAIN_ENTRY):
        problem = one_problem(changed(path, value), adapter)
        assert words in problem.rule
        pointer = "/" + path.replace(".", "/")
        assert problem.pointer.startswith(pointer) or (problem.pointer, path) == ("/preprocess", "input_size")


def test_no_character_that_is_not_seen_is_part_of_a_name_or_path() -> None:
    """The characters of the patterns are those of Unicode's categories."""
    unseen = [chr(i) for i in range(sys.maxunicode + 1) if unicodedata.category(chr(i)) in {"Cc", "Cf", "Zl", "Zp"}]
    assert len(unseen) > 200
    for character in unseen:
        for path in ("model_name", "layer", "weights", "notes"):
            assert check_document(changed(path, f"a{character}b"), ENTRY)[1], (path, character)
        assert check_document({"dataset_name": "d", "image_identifier": f"a{character}b"}, CATALOG_LINE)[1], character


def test_all_problems_of_an_entry_at_once() -> None:
    entry = changed("preprocess.std", [0, 1, 1]) | {"output_dim": "many", "sorce": "timm"}
    del entry["layer"]
    _, problems = check_document(entry, ENTRY)
    assert sorted(problem.pointer for problem in problems) == ["/layer", "/output_dim", "/preprocess/std/0", "/sorce"]


@pytest.mark.parametrize(
    "identifier", ["a", "a/b.png", ".hidden/..a/...", "1:2", "ab:c", "a/c:d", "~a b/é😀", "x" * 1024]
)
def test_plain_relative_paths(identifier: str) -> None:
    assert Stimulus(dataset_name="d", image_identifier=identifier).image_identifier == identifier


@pytest.mark.parametrize(
    "identifier",
    [
        *("/etc/passwd", "//a", "..", ".", "../a", "a/..", "a/../b", "./a", "a/./b", "a//b", "a/", "a/."),
        *("a\\b", "..\\a", "C:/a", "c:a", "c:", "\\\\server\\a", "nul\0", "a\nb", "a\n", "\x1b[31m", "\x7f", "\x85"),
        *("a\u202egnp.exe", "a\u200b.png", "\u2066a/b", "\ufeffa", "a\u2028b", "a\u2029"),
    ],
)
def test_other_identifiers_are_refused(identifier: str) -> None:
    problem = one_problem({"dataset_name": "d", "image_identifier": identifier}, CATALOG_LINE)
    assert problem.pointer == "/image_identifier"
    assert problem.rule.startswith("must be a plain relative path")


def test_identifiers_of_all_short_spellings() -> None:
    """The pattern agrees with the rule in plain code on every text of up to four characters of an alphabet."""

    def allowed(text: str) -> bool:
        drive = text[:1] in tuple(string.ascii_letters) and text[1:2] == ":"
        return not drive and "\\" not in text and not {"", ".", ".."} & set(text.split("/"))

    texts = [""]
    for _ in range(4):
        texts = [*texts, *{text + c for text in texts for c in "a./:\\é"}]
    for text in set(texts) - {""}:
        assert (check_document({"dataset_name": "d", "image_identifier": text}, CATALOG_LINE)[1] == []) == allowed(
            text
        ), text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("resnet50", "ResNet50"),
        ("caf\u00e9", "cafe\u0301"),
        ("straße", "STRASSE"),
        ("ﬁne", "FINE"),
        ("\u212b", "\u00e5"),
        ("\uff41", "a"),
        ("Σίσυφος", "ΣΊΣΥΦΟΣ"),
        # U+0345 is moved by normalisation and changed by case folding: both must come twice.
        ("\u1fb7", "\u03b1\u0342\u03b9"),
    ],
)
def test_spellings_of_one_name(one: str, other: str) -> None:
    assert one != other
    assert canonical_name(one) == canonical_name(other)


def test_other_names_stay_apart() -> None:
    names = ["resnet50", "resnet_50", "resnet101", "é", "e", "ı", "i", ""]
    assert len({canonical_name(name) for name in names}) == len(names)


@pytest.mark.parametrize("spelling", ["./a/b", "a//b", "a/./b", "a/c/../b", "a\\b", "a/b/", "\uff41/b"])
def test_spellings_of_one_path(spelling: str) -> None:
    assert canonical_stimulus("D", spelling) == canonical_stimulus("d", "a/b")
    assert canonical_stimulus("d", spelling) != canonical_stimulus("d", "ab")
    assert canonical_stimulus("d", spelling) != canonical_stimulus("d", "A/b")
