"""The challenge of a host, and its bundles, once for each file of tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headstart.tests.material.bundles import PLATFORMS, Host
from headstart.tests.material.codabench import unpack


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("host")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HACKATHON_DATASET_ROOT", str(folder / "drawings"))
        yield Host(folder)


@pytest.fixture(scope="module")
def bundles(host: Host) -> dict[str, Path]:
    """Unpack the bundles of the demonstration, by the platform, and for Codabench the team."""
    written = {name: host.write_bundle(name, host.folder / name) for name in PLATFORMS}
    files = {f"codabench {team}": written["codabench"] / f"demonstration-{team}.zip" for team in ("blue", "red")}
    files["evalai"] = written["evalai"] / "demonstration.zip"
    return {name: unpack(path, host.folder / f"unpacked {name}") for name, path in files.items()}
