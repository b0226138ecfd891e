"""The committed JSON Schema files are those of the models that the code uses."""

import json
from pathlib import Path
from typing import Any

from headstart.contract.versions import VERSIONS, json_schemas
from headstart.scripts.write_schemas import write_schemas

SCHEMAS = Path(__file__).parents[1] / "configs" / "schemas"


def texts(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_committed_files_are_what_the_script_writes(tmp_path: Path) -> None:
    write_schemas(tmp_path)
    written = texts(tmp_path)
    assert written == texts(SCHEMAS), "run python -m headstart.scripts.write_schemas"
    names = ["blue_submission", "model_registry", "red_submission", "stimuli_catalog"]
    assert sorted(written) == [f"{folder}{name}.schema.json" for folder in ("1.1/", "") for name in names]
    for name, text in written.items():
        version = "1.1" if name.startswith("1.1/") else "1.0"
        schema: dict[str, Any] = json.loads(text)
        assert (schema["contract_version"], schema["$id"].split(":")[2]) == (version, version)


def test_schemas_state_the_contracts_rules() -> None:
    plain, newer = map(json_schemas, VERSIONS)
    entry, newer_entry = (each["model_registry"]["$defs"]["ModelEntry"] for each in (plain, newer))
    fields = ["model_name", "source", "weights", "layer", "embedding", "input_size", "preprocess", "output_dim"]
    assert entry["required"] == fields
    assert set(entry["properties"]) == set(newer_entry["properties"])
    assert set(entry["properties"]) == {*fields, "model_parameters", "forward_args", "notes"}
    assert set(fields) - set(newer_entry["required"]) == {"input_size", "output_dim"}
    for field in ("input_size", "output_dim"):
        described = {key: value for key, value in newer_entry["properties"][field].items() if key != "default"}
        unchanged = {key: value for key, value in entry["properties"][field].items() if key != "description"}
        assert unchanged.items() <= described.items(), "null is no value"
    models = [each["blue_submission"]["$defs"]["SubmittedModel"]["properties"] for each in (plain, newer)]
    assert set(models[1]) - set(models[0]) == {"layer_name"}

    assert plain["stimuli_catalog"]["required"] == ["dataset_name", "image_identifier"]
    for name, key in [("blue_submission", "models"), ("red_submission", "differentiating_images")]:
        schema = plain[name]
        assert (schema["required"], schema["additionalProperties"]) == ([key], False)
        assert (schema["properties"][key]["minItems"], schema["properties"][key]["uniqueItems"]) == (2, True)


def test_every_field_of_a_schema_says_what_it_is() -> None:
    for schema in (each for version in VERSIONS for each in json_schemas(version).values()):
        for part in (schema, *schema.get("$defs", {}).values()):
            for field, described in part.get("properties", {}).items():
                assert "description" in described or "$ref" in described, (schema["$id"], field)
