"""The committed JSON Schema files are those of the models that the code uses."""

import json
from pathlib import Path
from typing import Any

import pytest

from headstart.contract.schema import CONTRACT_VERSION
from headstart.contract.versions import VERSIONS, Version, json_schemas
from headstart.scripts.write_schemas import write_schemas

SCHEMAS = Path(__file__).parents[1] / "configs" / "schemas"
NAMES = ["blue_submission", "model_registry", "red_submission", "stimuli_catalog"]


def read(name: str, version: Version = "1.0") -> dict[str, Any]:
    folder = SCHEMAS if version == CONTRACT_VERSION else SCHEMAS / version
    schema: dict[str, Any] = json.loads((folder / f"{name}.schema.json").read_text())
    return schema


def texts(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_committed_files_are_what_the_script_writes(tmp_path: Path) -> None:
    write_schemas(tmp_path)
    written = texts(tmp_path)
    assert written == texts(SCHEMAS), "run python -m headstart.scripts.write_schemas"
    assert sorted(written) == [f"{folder}{name}.schema.json" for folder in ("1.1/", "") for name in NAMES]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", NAMES)
def test_every_schema_names_the_version(name: str, version: Version) -> None:
    schema = read(name, version)
    assert schema == json_schemas(version)[name]
    assert schema["contract_version"] == version
    assert schema["$id"] == f"headstart:contract:{version}:{name}"


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


def test_version_1_1_adds_to_the_schemas() -> None:
    plain, entry = (read("model_registry", version)["$defs"]["ModelEntry"] for version in VERSIONS)
    assert set(plain["required"]) - set(entry["required"]) == {"input_size", "output_dim"}
    assert set(plain["properties"]) == set(entry["properties"])
    for field in ("input_size", "output_dim"):
        described = {key: value for key, value in entry["properties"][field].items() if key != "default"}
        unchanged = {key: value for key, value in plain["properties"][field].items() if key != "description"}
        assert unchanged.items() <= described.items(), "null is no value"
    plain, model = (read("blue_submission", version)["$defs"]["SubmittedModel"] for version in VERSIONS)
    assert set(model["properties"]) - set(plain["properties"]) == {"layer_name"}


@pytest.mark.parametrize("version", VERSIONS)
def test_every_field_of_a_schema_says_what_it_is(version: Version) -> None:
    for name in NAMES:
        schema = read(name, version)
        for part in (schema, *schema.get("$defs", {}).values()):
            for field, described in part.get("properties", {}).items():
                assert "description" in described or "$ref" in described, (name, field)
