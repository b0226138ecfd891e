"""Write the JSON Schema files of the evaluation contract's documents from their models.

python -m headstart.scripts.write_schemas
"""

import json
from pathlib import Path

from jsonargparse import auto_cli

from headstart.contract.schema import CONTRACT_VERSION
from headstart.contract.versions import VERSIONS, json_schemas
from headstart.output.files import write_texts

SCHEMAS = Path(__file__).parents[1] / "configs" / "schemas"


def write_schemas(output: Path = SCHEMAS) -> None:
    """Write `NAME.schema.json` for the model registry, a line of the stimuli catalog and both teams' submissions.

    Those of later versions of the contract than 1.0 are in a folder of the version's name.

    Args:
        output: The folder that the files are written to.
    """
    for version in VERSIONS:
        folder = output if version == CONTRACT_VERSION else output / version
        schemas = json_schemas(version).items()
        write_texts(folder, {f"{name}.schema.json": json.dumps(schema, indent=2) + "\n" for name, schema in schemas})


if __name__ == "__main__":
    auto_cli(write_schemas, as_positional=False)
