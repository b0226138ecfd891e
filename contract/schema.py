"""The evaluation contract's documents as typed models, and the problems of a parsed one in the contract's words.

The forms are those of version 1.1; `headstart.contract.versions` has those of 1.0, and chooses between them. The JSON
Schema files are generated from both.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from headstart.contract.names import (
    ARGUMENT_PATTERN,
    DATASET_PATTERN,
    IDENTIFIER_PATTERN,
    LONGEST_NAME,
    MODEL_PATTERN,
    PATTERN_RULES,
    TEXT_PATTERN,
)
from headstart.contract.problems import Problem, join_pointer, short_json

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

T = TypeVar("T")
EntryT = TypeVar("EntryT")

CONTRACT_VERSION = "1.0"

Track = Literal["blue", "red"]
Source = Literal["torchvision", "timm", "open_clip", "custom"]
Embedding = Literal["pool", "cls", "flatten", "mean"]

MIN_ENTRIES = 2
MAX_ENTRIES = 100_000
MAX_SIDE = 4096
MAX_OUTPUT_DIM = 10_000_000

# Tags distinguish the forms of a document or entry, and name them in messages. They also appear in the locations of
# pydantic's errors, although they are no location in the document.
NAME, OBJECT, LIST = "a name", "an object", "a list"
TAGS = frozenset({NAME, OBJECT, LIST})
# Pydantic's location of an error about a key instead of its value.
KEY = "[key]"


class Document(BaseModel):
    """A part of a document: strictly typed, without additional fields."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


# JSON has no tuples, and strict models accept no list for a tuple.
AS_LIST = Field(strict=False)
_Text = Annotated[str, Field(min_length=1, max_length=256, pattern=TEXT_PATTERN)]
VERSION = Field(description="Version of the contract that the document is written for.")
_Version = Annotated[Literal["1.1"], VERSION]
Side = Annotated[int, Field(ge=1, le=MAX_SIDE)]
_Mean = Annotated[float, Field(allow_inf_nan=False)]
_Deviation = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Remarks = Annotated[str, Field(max_length=10_000, pattern=TEXT_PATTERN)]
_Named = Annotated[
    dict[Annotated[str, Field(pattern=ARGUMENT_PATTERN)], Any], Field(json_schema_extra={"additionalProperties": False})
]
_Arguments = Annotated[
    _Named, BeforeValidator(lambda value: {} if value is None else value, json_schema_input_type=_Named | None)
]
ModelName = Annotated[
    str,
    Field(min_length=1, max_length=256, pattern=MODEL_PATTERN, description="Unique key of the model in the registry."),
]
OutputDim = Annotated[int, Field(ge=1, le=MAX_OUTPUT_DIM)]


def _not_null(kind: str) -> Callable[[T], T]:
    """Return a validator that rejects null for an optional field: a field that is written must have a value."""

    def check(value: T) -> T:
        if value is None:
            raise ValueError(f"must be {kind}, or be left out")
        return value

    return check


class Preprocess(Document):
    """How a stimulus is prepared: shorter side resized, square centre crop, scaled to [0, 1], standardised."""

    mean: Annotated[tuple[_Mean, _Mean, _Mean], AS_LIST, Field(description="Means of the red, green, blue channel.")]
    std: Annotated[
        tuple[_Deviation, _Deviation, _Deviation], AS_LIST, Field(description="Deviations of the channels, positive.")
    ]
    resize: Annotated[Side, Field(description="Shorter side after resizing, in pixels.")]
    crop: Annotated[Side, Field(description="Side of the centre crop in pixels, at most resize.")]
    interpolation: Annotated[Literal["bilinear", "bicubic"], Field(description="Interpolation of the resizing.")] = (
        "bilinear"
    )

    @field_validator("crop")
    @classmethod
    def _fits_in(cls, crop: int, info: ValidationInfo) -> int:
        resize = info.data.get("resize", crop)
        if crop > resize:
            raise ValueError(f"must not be larger than resize, {resize}")
        return crop


class ModelEntry(Document):
    """How a model is loaded, and where its embedding is taken."""

    model_name: ModelName
    source: Annotated[Source, Field(description="Library, or custom code, that the model comes from.")]
    weights: Annotated[
        Annotated[str, Field(min_length=1, max_length=LONGEST_NAME, pattern=TEXT_PATTERN)] | None,
        Field(description="Pretrained identifier or local file; null for random weights."),
    ]
    layer: Annotated[_Text, Field(description="Module path or alias of the layer, such as fc, classifier.4, visual.")]
    embedding: Annotated[Embedding, Field(description="How the layer's output becomes one row per stimulus.")]
    input_size: Annotated[
        tuple[Side, Side] | None,
        AS_LIST,
        BeforeValidator(_not_null("a list"), json_schema_input_type=tuple[Side, Side]),
        Field(description="Height and width in pixels, both equal to preprocess.crop, and that by default."),
    ] = None
    preprocess: Preprocess
    output_dim: Annotated[
        OutputDim | None,
        BeforeValidator(_not_null("a valid integer"), json_schema_input_type=OutputDim),
        Field(description="Width of the embedding; where it is left out, that of the layer's output."),
    ] = None
    model_parameters: Annotated[_Arguments, Field(description="Arguments of the model's constructor; null is {}.")] = {}
    forward_args: Annotated[_Arguments, Field(description="Arguments of the forward call; null is {}.")] = {}
    notes: Annotated[
        _Remarks,
        BeforeValidator(lambda value: "" if value is None else value, json_schema_input_type=_Remarks | None),
        Field(description="Remarks for people; null is none."),
    ] = ""

    @field_validator("preprocess")
    @classmethod
    def _matches_input_size(cls, preprocess: Preprocess, info: ValidationInfo) -> Preprocess:
        crop = preprocess.crop
        height, width = info.data.get("input_size") or (crop, crop)
        if (height, width) != (crop, crop):
            raise ValueError(f"crop {crop} must be both sides of input_size, [{height}, {width}]")
        return preprocess

    @model_validator(mode="after")
    def _fill_input_size(self) -> ModelEntry:
        if self.input_size is None:
            # The instance is frozen already.
            object.__setattr__(self, "input_size", (self.preprocess.crop, self.preprocess.crop))
        return self


class Stimulus(Document):
    """One image of a dataset."""

    dataset_name: Annotated[
        str, Field(min_length=1, max_length=128, pattern=DATASET_PATTERN, description="Canonical id of the dataset.")
    ]
    image_identifier: Annotated[
        str,
        Field(
            min_length=1,
            max_length=LONGEST_NAME,
            pattern=IDENTIFIER_PATTERN,
            description="Path relative to the dataset's root, with '/' between its parts.",
        ),
    ]


class PlainSubmittedModel(Document):
    """The longer form of a submitted model, as far as both versions share it."""

    model_name: ModelName
    source: Annotated[_Text | None, Field(description="As in the registry, where given; null says nothing.")] = None
    model_parameters: Annotated[_Named | None, Field(description="As in the registry, where given; null is {}.")] = None


class SubmittedModel(PlainSubmittedModel):
    """The longer form of a submitted model, which must agree with the registry."""

    layer_name: Annotated[
        _Text | None, Field(description="As the registry's layer, where given; null says nothing.")
    ] = None


def form_of(value: object) -> str:
    """Return the tag of a document or entry that is not validated yet."""
    forms: dict[type, str] = {str: NAME, dict: OBJECT, list: LIST}
    return forms.get(type(value), "another")


_ENTRIES = Field(min_length=1, max_length=MAX_ENTRIES, description="Models of unique names.")
_SUBMITTED = Field(
    min_length=MIN_ENTRIES,
    max_length=MAX_ENTRIES,
    description="At least two of the registry's models or the catalog's stimuli, none twice.",
    json_schema_extra={"uniqueItems": True},
)
# Types of both versions, by their forms of a model or a registry.
Entries = Annotated[tuple[T, ...], AS_LIST, _ENTRIES]
SubmittedModels = Annotated[
    tuple[Annotated[Annotated[ModelName, Tag(NAME)] | Annotated[T, Tag(OBJECT)], Discriminator(form_of)], ...],
    AS_LIST,
    _SUBMITTED,
]
SubmittedStimuli = Annotated[tuple[Stimulus, ...], AS_LIST, _SUBMITTED]
RegistryForm = Annotated[
    Annotated[T, Tag(OBJECT)] | Annotated[tuple[EntryT, ...], AS_LIST, _ENTRIES, Tag(LIST)], Discriminator(form_of)
]


class ModelRegistry(Document):
    """The models that submissions are scored with."""

    contract_version: _Version = "1.1"
    models: Entries[ModelEntry]


class BlueSubmission(Document):
    """Models that a Blue Team takes for alike."""

    contract_version: _Version = "1.1"
    models: SubmittedModels[SubmittedModel]


class RedSubmission(Document):
    """Stimuli that a Red Team takes for telling models apart."""

    contract_version: _Version = "1.1"
    differentiating_images: SubmittedStimuli


# One line of the catalog, which is JSON lines; it is the same in both versions.
CATALOG_LINE: TypeAdapter[Stimulus] = TypeAdapter(Stimulus)


# Rules by the kind of pydantic's error; the words in braces are values of the error's context and those of `_rule`.
_RULES = {
    "missing": "is required",
    "model_type": "must be an object",
    "dict_type": "must be an object",
    "tuple_type": "must be a list",
    "string_too_short": "must not be empty",
    "extra_forbidden": "is not a field of {name}",
    "too_short": "must have at least {min_length} items, not {length}",
    "too_long": "must have at most {max_length} items, not {length}",
    "value_error": "{error}",
    "zoneinfo_str": "is not the name of a time zone, such as UTC or Europe/Berlin",
}


def check_document(
    document: object, adapter: TypeAdapter[T], name: str = "the contract"
) -> tuple[T | None, list[Problem]]:
    """Check a parsed document's types, fields and bounds.

    Args:
        document: The document.
        adapter: Its type.
        name: Name of the form, for messages about unknown fields.

    Returns:
        The document typed, or None, and all problems.
    """
    try:
        return adapter.validate_python(document), []
    except ValidationError as error:
        details = error.errors(include_url=False)
        return None, [_describe(detail, name) for detail in details if not _is_long_enough(detail)]


def _is_long_enough(detail: ErrorDetails) -> bool:
    """Return whether a list only seems too short, because pydantic does not count its invalid entries."""
    return detail["type"] == "too_short" and len(detail["input"]) >= detail["ctx"]["min_length"]


def _describe(detail: ErrorDetails, name: str) -> Problem:
    location = [part for part in detail["loc"] if part not in TAGS and part != KEY]
    value = "" if detail["type"] == "missing" else short_json(detail["input"])
    return Problem(join_pointer(location), value, _rule(detail, name))


def _rule(detail: ErrorDetails, name: str) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind in _RULES:
        length = len(detail["input"]) if kind.startswith("too_") else 0
        return _RULES[kind].format(name=name, length=length, **context)
    if kind == "string_pattern_mismatch":
        return PATTERN_RULES[context["pattern"]]
    if kind == "union_tag_invalid":
        return f"must be {context['expected_tags'].replace(', ', ' or ')}".replace("'", "")
    return re.sub(r"^\w+ should ", "must ", detail["msg"])
