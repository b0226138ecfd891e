"""The evaluation contract's documents as typed models, and what is wrong with a parsed one in the contract's words.

The JSON Schema files are generated from the models.
"""

from __future__ import annotations

import re
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
)

from contract.names import DATASET_PATTERN, IDENTIFIER_PATTERN, LONGEST_NAME, PATTERN_RULES, TEXT_PATTERN
from contract.problems import Problem, join_pointer, short_json

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

T = TypeVar("T")

CONTRACT_VERSION = "1.0"

Team = Literal["blue", "red"]
Source = Literal["torchvision", "timm", "open_clip", "custom"]
Embedding = Literal["pool", "cls", "flatten", "mean"]

MIN_ENTRIES = 2
MAX_ENTRIES = 100_000
MAX_SIDE = 4096
MAX_OUTPUT_DIM = 10_000_000

# Tags tell the forms of a document or entry apart. They come up in the places of pydantic's errors, where they are no
# place in the document, and say in messages which forms there are.
NAME, OBJECT, LIST = "a name", "an object", "a list"
TAGS = frozenset({NAME, OBJECT, LIST})


class _Document(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


# JSON has lists alone: strict models would take no list for a tuple.
_AS_LIST = Field(strict=False)
_Text = Annotated[str, Field(min_length=1, max_length=256, pattern=TEXT_PATTERN)]
_Version = Annotated[Literal["1.0"], Field(description="Version of the contract that the document is written for.")]
_Side = Annotated[int, Field(ge=1, le=MAX_SIDE)]
_Mean = Annotated[float, Field(allow_inf_nan=False)]
_Deviation = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Remarks = Annotated[str, Field(max_length=10_000, pattern=TEXT_PATTERN)]
_Arguments = Annotated[
    dict[str, Any],
    BeforeValidator(lambda given: {} if given is None else given, json_schema_input_type=dict[str, Any] | None),
]
_ModelName = Annotated[_Text, Field(description="Unique key of the model in the registry.")]


class Preprocess(_Document):
    """How a stimulus is prepared: shorter side resized, square centre crop, scaled to [0, 1], standardised."""

    mean: Annotated[tuple[_Mean, _Mean, _Mean], _AS_LIST, Field(description="Means of the red, green, blue channel.")]
    std: Annotated[
        tuple[_Deviation, _Deviation, _Deviation], _AS_LIST, Field(description="Deviations of the channels, positive.")
    ]
    resize: Annotated[_Side, Field(description="Shorter side after resizing, in pixels.")]
    crop: Annotated[_Side, Field(description="Side of the centre crop in pixels, at most resize.")]
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


class ModelEntry(_Document):
    """How a model is loaded, and where its embedding is taken."""

    model_name: _ModelName
    source: Annotated[Source, Field(description="Library, or custom code, that the model comes from.")]
    weights: Annotated[
        Annotated[str, Field(min_length=1, max_length=LONGEST_NAME, pattern=TEXT_PATTERN)] | None,
        Field(description="Pretrained identifier or local file; null for random weights."),
    ]
    layer: Annotated[_Text, Field(description="Module path or alias of the layer, such as fc, classifier.4, visual.")]
    embedding: Annotated[Embedding, Field(description="How the layer's output becomes one row per stimulus.")]
    input_size: Annotated[
        tuple[_Side, _Side], _AS_LIST, Field(description="Height and width in pixels, both equal to preprocess.crop.")
    ]
    preprocess: Preprocess
    output_dim: Annotated[int, Field(ge=1, le=MAX_OUTPUT_DIM, description="Width of the embedding.")]
    model_parameters: Annotated[_Arguments, Field(description="Arguments of the model's constructor; null is {}.")] = {}
    forward_args: Annotated[_Arguments, Field(description="Arguments of the forward call; null is {}.")] = {}
    notes: Annotated[
        _Remarks,
        BeforeValidator(lambda given: "" if given is None else given, json_schema_input_type=_Remarks | None),
        Field(description="Remarks for people; null is none."),
    ] = ""

    @field_validator("preprocess")
    @classmethod
    def _gives_input_size(cls, preprocess: Preprocess, info: ValidationInfo) -> Preprocess:
        crop = preprocess.crop
        height, width = info.data.get("input_size", (crop, crop))
        if (height, width) != (crop, crop):
            raise ValueError(f"crop {crop} must be both sides of input_size, [{height}, {width}]")
        return preprocess


class Stimulus(_Document):
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


class SubmittedModel(_Document):
    """The longer form of a submitted model, which must agree with the registry."""

    model_name: _ModelName
    source: Annotated[_Text | None, Field(description="As in the registry, where given; null says nothing.")] = None
    model_parameters: Annotated[
        dict[str, Any] | None, Field(description="As in the registry, where given; null is {}.")
    ] = None


def _form(value: object) -> str:
    """Tell the forms of a document or entry apart before it is validated."""
    forms = {str: NAME, dict: OBJECT, list: LIST}
    return next((form for kind, form in forms.items() if isinstance(value, kind)), "another")


_Entries = Annotated[
    tuple[ModelEntry, ...], _AS_LIST, Field(min_length=1, max_length=MAX_ENTRIES, description="Models of unique names.")
]
_SUBMITTED = Field(
    min_length=MIN_ENTRIES,
    max_length=MAX_ENTRIES,
    description="At least two of the registry's models or the catalog's stimuli, none twice.",
    json_schema_extra={"uniqueItems": True},
)


class ModelRegistry(_Document):
    """The models that submissions are scored with."""

    contract_version: _Version = "1.0"
    models: _Entries


_SubmittedForm = Annotated[
    Annotated[_ModelName, Tag(NAME)] | Annotated[SubmittedModel, Tag(OBJECT)], Discriminator(_form)
]


class BlueSubmission(_Document):
    """Models that a Blue Team takes for alike."""

    contract_version: _Version = "1.0"
    models: Annotated[tuple[_SubmittedForm, ...], _AS_LIST, _SUBMITTED]


class RedSubmission(_Document):
    """Stimuli that a Red Team takes for telling models apart."""

    contract_version: _Version = "1.0"
    differentiating_images: Annotated[tuple[Stimulus, ...], _AS_LIST, _SUBMITTED]


_RegistryForm = Annotated[Annotated[ModelRegistry, Tag(OBJECT)] | Annotated[_Entries, Tag(LIST)], Discriminator(_form)]

# The four documents; of the catalog, which is JSON lines, one line.
REGISTRY: TypeAdapter[ModelRegistry | tuple[ModelEntry, ...]] = TypeAdapter(_RegistryForm)
CATALOG_LINE: TypeAdapter[Stimulus] = TypeAdapter(Stimulus)
SUBMISSIONS: dict[Team, TypeAdapter[Any]] = {"blue": TypeAdapter(BlueSubmission), "red": TypeAdapter(RedSubmission)}


def json_schemas() -> dict[str, dict[str, Any]]:
    """Describe the four documents as JSON Schema, by name, each with the contract's version.

    A schema says what it can: that a crop fits into what it is cut from, that names are in the registry and that none
    comes twice in another spelling is checked by the code alone.
    """
    submissions = {f"{team}_submission": adapter for team, adapter in SUBMISSIONS.items()}
    adapters: dict[str, TypeAdapter[Any]] = {"model_registry": REGISTRY, "stimuli_catalog": CATALOG_LINE, **submissions}
    return {
        name: {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": f"headstart:contract:{CONTRACT_VERSION}:{name}",
            "contract_version": CONTRACT_VERSION,
            **adapter.json_schema(),
        }
        for name, adapter in adapters.items()
    }


_RULES = {
    "missing": "is required",
    "model_type": "must be an object",
    "dict_type": "must be an object",
    "tuple_type": "must be a list",
    "string_too_short": "must not be empty",
}


def check_document(
    document: object, adapter: TypeAdapter[T], of: str = "the contract"
) -> tuple[T | None, list[Problem]]:
    """Check a parsed document's types, fields and bounds.

    Args:
        document: The document.
        adapter: Its type.
        of: What the fields are of, for messages.

    Returns:
        The document typed, or None, and all problems at once.
    """
    try:
        return adapter.validate_python(document), []
    except ValidationError as error:
        found = error.errors(include_url=False)
        return None, [_describe(detail, of) for detail in found if not _counts_valid_entries_alone(detail)]


def _counts_valid_entries_alone(detail: ErrorDetails) -> bool:
    """Tell whether a list is long enough, and only appears too short because of entries with problems of their own."""
    return detail["type"] == "too_short" and len(detail["input"]) >= detail["ctx"]["min_length"]


def describe_version(asked: object) -> Problem:
    """Refuse a document of another version of the contract, with a problem that names both."""
    value = short_json(asked)
    rule = f"contract version {value} is asked for, and the version here is {short_json(CONTRACT_VERSION)}"
    return Problem("/contract_version", value, rule)


def _describe(detail: ErrorDetails, of: str) -> Problem:
    place = [part for part in detail["loc"] if part not in TAGS]
    if place == ["contract_version"]:
        return describe_version(detail["input"])
    value = "" if detail["type"] == "missing" else short_json(detail["input"])
    return Problem(join_pointer(place), value, _rule(detail, of))


def _rule(detail: ErrorDetails, of: str) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        return f"is not a field of {of}"
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
