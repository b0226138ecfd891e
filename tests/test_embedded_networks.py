"""The networks that come with the suite, which the demos compare."""

from pathlib import Path

import numpy as np
import pytest

from headstart.__main__ import main
from headstart.contract.documents import read_registry
from headstart.tests.material.root import ROOT, require_checkout


@pytest.mark.slow
@pytest.mark.parametrize("registry", ["embedded", "embedded_held_out"])
def test_no_embedded_network_is_of_a_scale_where_an_epsilon_decides(
    registry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_checkout()
    monkeypatch.setenv("HACKATHON_DATASET_ROOT", str(tmp_path))
    monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path / "cache"))
    path, catalog = ROOT / "configs" / "registry" / f"{registry}.json", tmp_path / "stimuli.jsonl"
    main(["write-photos", str(tmp_path / "drawn_pets"), "--count=12"])
    main(["write-catalog", str(tmp_path / "drawn_pets"), f"--output={catalog}"])
    options = [f"--registry={path}", f"--catalog={catalog}", f"--output={tmp_path / 'out'}", "--logger=false"]
    main(["cka", f"--models=[{','.join(read_registry(path).entries)}]", "--save_embeddings=true", *options])
    with np.load(tmp_path / "out" / "embeddings.npz") as embeddings:
        assert min(rows.std(axis=0).max() for rows in embeddings.values()) > 0.01


def test_embedded_registry_needs_no_download() -> None:
    registry = read_registry(ROOT / "configs/registry/embedded.json")
    for entry in registry.entries.values():
        assert entry.weights is None or (registry.path.parent / entry.weights).is_file()
