"""The forms of version 1.0 of the contract that are narrower than those of `headstart.contract.schema`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from headstart.contract import schema
from headstart.contract.schema import (
    AS_LIST,
    ENTRIES,
    LIST,
    NAME,
    OBJECT,
    SUBMITTED,
    VERSION,
    Document,
    ModelName,
    OutputDim,
    PlainSubmittedModel,
    Side,
    Stimulus,
    form_of,
)


class ModelEntry(schema.ModelEntry):
    """How a model is loaded, and where its embedding is taken."""

    input_size: Annotated[
        tuple[Side, Side], AS_LIST, Field(description="Height and width in pixels, both equal to preprocess.crop.")
    ]
    output_dim: Annotated[OutputDim, Field(description="Width of the embedding.")]


class ModelRegistry(Document):
    """The models that submissions are scored with."""

    contract_version: Annotated[Literal["1.0"], VERSION] = "1.0"
    models: Annotated[tuple[ModelEntry, ...], AS_LIST, ENTRIES]


class SubmittedModel(PlainSubmittedModel):
    """The longer form of a submitted model, which must agree with the registry."""


class BlueSubmission(Document):
    """Models that a Blue Team takes for alike."""

    contract_version: Annotated[Literal["1.0"], VERSION] = "1.0"
    models: Annotated[
        tuple[
            Annotated[Annotated[ModelName, Tag(NAME)] | Annotated[SubmittedModel, Tag(OBJECT)], Discriminator(form_of)],
            ...,
        ],
        AS_LIST,
        SUBMITTED,
    ]


class RedSubmission(Document):
    """Stimuli that a Red Team takes for telling models apart."""

    contract_version: Annotated[Literal["1.0"], VERSION] = "1.0"
    differentiating_images: Annotated[tuple[Stimulus, ...], AS_LIST, SUBMITTED]


RegistryForm = Annotated[
    Annotated[ModelRegistry, Tag(OBJECT)] | Annotated[tuple[ModelEntry, ...], AS_LIST, ENTRIES, Tag(LIST)],
    Discriminator(form_of),
]
