"""A challenge on drawn cats and dogs and the embedded networks, and the command that writes its bundles."""

import io
import json
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import yaml

from headstart.__main__ import main

PLATFORMS = ("codabench", "evalai")
REGISTRY, RULES = "configs/registry/embedded.json", "configs/portal/demonstration.yaml"


class Host:
    """Documents of a host's challenge, and what is done with them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.catalog = folder, folder / "stimuli.jsonl"
        main(["write-photos", str(folder / "drawings" / "drawn_pets"), "--count=12", "--photos=DrawnPets"])
        main(["write-catalog", str(folder / "drawings" / "drawn_pets"), f"--output={self.catalog}"])
        stimuli = [json.loads(line) for line in self.catalog.read_text().splitlines()]
        self.documents: dict[str, Any] = {
            "blue": {"models": ["drawn_objects", "drawn_halfway"]},
            "red": {"differentiating_images": stimuli[:10]},
        }

    def options(self, rules: str = RULES) -> list[str]:
        return [f"--registry={REGISTRY}", f"--catalog={self.catalog}", f"--rules={rules}"]

    def write_bundle(self, platform: str, output: Path, *more: str, rules: str = RULES) -> Path:
        main(["challenge-bundle", f"--platform={platform}", f"--output={output}", *self.options(rules), *more])
        return output

    def write_rules(self, **fields: Any) -> str:
        path = self.folder / "rules.yaml"
        path.write_text(yaml.safe_dump({"name": "owls", "title": "Owls", "teams": {"blue": {}, "red": {}}} | fields))
        return str(path)

    def score(self, team: str) -> dict[str, Any]:
        """Score by the command, as a participant would at home."""
        options = [f"--challenge={RULES}", *self.options()[:2], "--logger=false", "--overwrite=true"]
        submission, output = self.folder / f"{team}.json", self.folder / "scores"
        submission.write_text(json.dumps(self.documents[team]))
        main(["cka", f"--submission={submission}", f"--output={output}", *options])
        document: dict[str, Any] = json.loads((output / "score.json").read_text())
        return document


def as_zip(files: dict[str, Any]) -> bytes:
    with io.BytesIO() as file:
        with ZipFile(file, "w") as archive:
            for name, document in files.items():
                archive.writestr(name, json.dumps(document))
        return file.getvalue()
