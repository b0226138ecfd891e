"""The forms of version 1.0 of the contract that are narrower than those of `headstart.contract.schema`."""

from typing import Annotated, Literal

from pydantic import Field

from headstart.contract import schema

_Version = Annotated[Literal["1.0"], schema.VERSION]


class ModelEntry(schema.ModelEntry):
    """How a model is loaded, and where its embedding is taken."""

    input_size: Annotated[
        tuple[schema.Side, schema.Side],
        schema.AS_LIST,
        Field(description="Height and width in pixels, both equal to preprocess.crop."),
    ]
    output_dim: Annotated[schema.OutputDim, Field(description="Width of the embedding.")]


class ModelRegistry(schema.Document):
    """The models that submissions are scored with."""

    contract_version: _Version = "1.0"
    models: schema.Entries[ModelEntry]


class SubmittedModel(schema.PlainSubmittedModel):
    """The longer form of a submitted model, which must agree with the registry."""


class BlueSubmission(schema.Document):
    """Models that a Blue Team takes for alike."""

    contract_version: _Version = "1.0"
    models: schema.SubmittedModels[SubmittedModel]


class RedSubmission(schema.Document):
    """Stimuli that a Red Team takes for telling models apart."""

    contract_version: _Version = "1.0"
    differentiating_images: schema.SubmittedStimuli
