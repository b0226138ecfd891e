"""Shipped configurations: what they point to."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from train import main

CONFIGS = Path(__file__).parents[1] / "configs"
LOCAL = CONFIGS / "local" / "shared.yaml"


def test_no_shipped_configuration_points_outside_of_the_checkout() -> None:
    files = [path for path in CONFIGS.rglob("*") if path.is_file() and path != LOCAL]
    assert len(files) > 15
    assert [path.name for path in files if "../shared" in path.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize("name", ["cats_and_dogs.yaml", "fine_tuning.yaml"])
def test_local_override(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def data(*configs: Path) -> dict[str, object]:
        with pytest.raises(SystemExit) as ended:
            main([*(f"--config={path}" for path in configs), "--print_config"])
        assert ended.value.code == 0
        arguments: dict[str, object] = yaml.safe_load(capsys.readouterr().out)["data"]["init_args"]
        return arguments

    shipped, local = data(CONFIGS / name), data(CONFIGS / name, LOCAL)
    assert shipped.pop("photos")["init_args"]["download"] is True  # type: ignore[index]
    assert local.pop("photos")["init_args"]["root"] == "../shared/data/cats_and_dogs"  # type: ignore[index]
    weights = {str(arguments["backbone"].pop("weights")) for arguments in (shipped, local)}  # type: ignore[attr-defined]
    assert weights == {"IMAGENET1K_V1", "../shared/weights/mobilenet_v2_imagenet.safetensors"}
    assert shipped == local
