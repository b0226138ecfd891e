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


def test_every_field_of_a_schema_says_what_it_is() -> None:
    for schema in (each for version in VERSIONS for each in json_schemas(version).values()):
        for part in (schema, *schema.get("$defs", {}).values()):
            for field, described in part.get("properties", {}).items():
                assert "description" in described or "$ref" in described, (schema["$id"], field)
