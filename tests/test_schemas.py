"""The committed JSON Schema files are those of the models that the code uses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from contract.schema import CONTRACT_VERSION, json_schemas
from scripts.write_schemas import write_schemas

SCHEMAS = Path(__file__).parents[1] / "configs" / "schemas"
NAMES = ["blue_submission", "model_registry", "red_submission", "stimuli_catalog"]


def read(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    return schema


def test_committed_files_are_what_the_script_writes(tmp_path: Path) -> None:
    write_schemas(tmp_path)
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert written == {path.name: path.read_text() for path in SCHEMAS.iterdir()}, "run python -m scripts.write_schemas"
    assert sorted(written) == [f"{name}.schema.json" for name in NAMES]


@pytest.mark.parametrize("name", NAMES)
def test_every_schema_names_the_version(name: str) -> None:
    schema = read(name)
    assert schema == json_schemas()[name]
    assert schema["contract_version"] == CONTRACT_VERSION
    assert schema["$id"] == f"headstart:contract:{CONTRACT_VERSION}:{name}"


def test_schemas_state_the_contracts_rules() -> None:
    entry = read("model_registry")["$defs"]["ModelEntry"]
    fields = ["model_name", "source", "weights", "layer", "embedding", "input_size", "preprocess", "output_dim"]
    assert entry["required"] == fields
    assert set(entry["properties"]) == {*fields, "model_parameters", "forward_args", "notes"}
    assert read("stimuli_catalog")["required"] == ["dataset_name", "image_identifier"]
    for name, key in [("blue_submission", "models"), ("red_submission", "differentiating_images")]:
        schema = read(name)
        assert schema["required"] == [key]
        assert schema["additionalProperties"] is False
        assert (schema["properties"][key]["minItems"], schema["properties"][key]["uniqueItems"]) == (2, True)
        assert schema["properties"]["contract_version"]["const"] == CONTRACT_VERSION


def test_every_field_of_a_schema_says_what_it_is() -> None:
    for name in NAMES:
        schema = read(name)
        for part in (schema, *schema.get("$defs", {}).values()):
            for field, described in part.get("properties", {}).items():
                assert "description" in described or "$ref" in described, (name, field)
