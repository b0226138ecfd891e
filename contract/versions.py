"""The versions of the contract: the choice of the version of a document, and the narrower forms of version 1.0.

Version 1.1 is 1.0 with more optional fields; both are scored alike. `headstart.contract.schema` has its forms.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from headstart.contract import schema
from headstart.contract.problems import Problem, short_json
from headstart.contract.schema import CATALOG_LINE, RegistryForm, Track, check_document

Version = Literal["1.0", "1.1"]
VERSIONS: tuple[Version, ...] = ("1.0", "1.1")
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


REGISTRIES: dict[Version, TypeAdapter[Any]] = {
    "1.0": TypeAdapter(RegistryForm[ModelRegistry, ModelEntry]),
    "1.1": TypeAdapter(RegistryForm[schema.ModelRegistry, schema.ModelEntry]),
}
SUBMISSIONS: dict[Version, dict[Track, TypeAdapter[Any]]] = {
    "1.0": {"blue": TypeAdapter(BlueSubmission), "red": TypeAdapter(RedSubmission)},
    "1.1": {"blue": TypeAdapter(schema.BlueSubmission), "red": TypeAdapter(schema.RedSubmission)},
}


def check_versioned(
    document: Any,  # noqa: ANN401 - any JSON value
    adapters: dict[Version, TypeAdapter[Any]],
    accepted: Sequence[Version] = VERSIONS,
) -> tuple[Any, Version, list[Problem]]:
    """Check a parsed document by the version that it names.

    A document that names none is checked by the oldest version that it is valid in, else by the newest.

    Args:
        document: The document.
        adapters: Its type by version.
        accepted: The accepted versions, from the oldest to the newest.

    Returns:
        The document typed, or None; the version that it was checked by; and all problems.
    """
    candidates, problems = accepted, []
    if isinstance(document, dict) and "contract_version" in document:
        named = document["contract_version"]
        if named in accepted:
            candidates = [named]
        else:
            # The newest version finds the other problems, as if the document named no version.
            value, names = short_json(named), " and ".join(map(short_json, accepted))
            verb = "version is" if len(accepted) == 1 else "versions are"
            rule = f"contract version {value} is not accepted; the accepted {verb} {names}"
            problems.append(Problem("/contract_version", value, rule))
            document = {key: value for key, value in document.items() if key != "contract_version"}

    for version in candidates:
        name = "the contract" if version == VERSIONS[-1] else f"version {version} of the contract"
        checked, violations = check_document(document, adapters[version], name)
        if not violations:
            break
    return (None if problems else checked), version, [*problems, *violations]


def json_schemas(version: Version) -> dict[str, dict[str, Any]]:
    """Return the JSON Schemas of the four documents of a version, by name.

    Only the code checks that a crop fits into the resized picture. The same is true of names: they must be in the
    registry, and not repeated in another spelling. A schema cannot express this.
    """
    submissions = {f"{team}_submission": adapter for team, adapter in SUBMISSIONS[version].items()}
    adapters: dict[str, TypeAdapter[Any]] = {
        "model_registry": REGISTRIES[version],
        "stimuli_catalog": CATALOG_LINE,
        **submissions,
    }
    return {
        name: {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": f"headstart:contract:{version}:{name}",
            "contract_version": version,
            **adapter.json_schema(),
        }
        for name, adapter in adapters.items()
    }
