"""Fixtures that tests share: photos, an own cache and ledger, no account anywhere, and runs of the command line."""

import atexit
import gc
import itertools
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from headstart.modules import running_code
from headstart.output import executed_code
from headstart.tests.material.blank_figures import blank_figures

SIZES = [(48, 40), (33, 57), (32, 32), (20, 26), (90, 31)]
SPLITS = {"train": 12, "validation": 6}
CLASSES = ("dark", "light")
ACCOUNT = ("WANDB_API_KEY", "WANDB_MODE", "WANDB_ENTITY", "WANDB_PROJECT", "WANDB_DIR", "WANDB_BASE_URL")

# The hub's package reads this at import, which collecting the tests may cause; its default retries for 20 seconds.
os.environ["HF_HUB_OFFLINE"] = "1"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests without looking for garbage: modules stay to the end, and the search takes half of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        # Extension modules print what is left of them at the end of the process.
        atexit.register(gc.unfreeze)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest test, so that no worker is left alone with it at the end."""
    items.sort(key=lambda item: item.path.name != "test_docs_commands.py")


@pytest.fixture(autouse=True, scope="session")
def interruptible() -> None:
    """Enable Ctrl-C in this process and its children, also where they were started in the background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def isolated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Name folders, one for each test, that nothing creates before it is needed: there are thousands of tests."""
    folder = tmp_path_factory.mktemp("isolated")
    (folder / "netrc").touch()
    return (folder / str(number) for number in itertools.count())


@pytest.fixture
def forgotten(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Forget the modules that a test has written and imported, as the end of a process does."""
    yield
    folder = str(tmp_path_factory.getbasetemp())
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(folder):
            del sys.modules[name]


@pytest.fixture(autouse=True)
def isolation(forgotten: None, isolated: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every test with a cache and a ledger of its own, without account, shared folder or model hub."""
    # Of files that a test writes, only a restart would tell that they are as they were when they were imported.
    monkeypatch.setattr(running_code, "STARTED", float("inf"))
    # What other tests have executed is not of this one's process, which runs a script, as workers of pytest do not.
    executed_code.executed.clear()
    monkeypatch.setattr(sys.modules["__main__"], "__file__", pytest.__file__, raising=False)
    folder = next(isolated)
    monkeypatch.setenv("HEADSTART_CACHE", str(folder / "cache"))
    monkeypatch.setenv("HEADSTART_LEDGER", str(folder / "ledger"))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    monkeypatch.setenv("NETRC", str(folder.parent / "netrc"))
    for name in ("CACHE", "CONFIG", "DATA"):
        monkeypatch.setenv(f"WANDB_{name}_DIR", str(folder / "wandb"))
    for name in (*ACCOUNT, "HEADSTART_SHARED"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def shared_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute the features of the demo's drawings once for all tests that ask for this."""
    monkeypatch.setenv("HEADSTART_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Start a Ray cluster of two machines with a processor each."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    yield cluster
    cluster.shutdown()


@pytest.fixture
def photo_folder(tmp_path: Path) -> Path:
    """Write JPEGs of two classes in several sizes: `train/` with 12 photos of each, `validation/` with 6."""
    return write_photos(tmp_path / "pictures")


@pytest.fixture(scope="session")
def small_comparison() -> Callable[[Path], list[str]]:
    """Return options of a comparison that takes about a second, on photos that are written into a folder."""
    return lambda folder: list_options(write_photos(folder / "pictures"))


def write_photos(root: Path) -> Path:
    generator = np.random.default_rng(0)
    for split, count in SPLITS.items():
        for label, name in enumerate(CLASSES):
            folder = root / split / name
            folder.mkdir(parents=True)
            for i in range(count):
                width, height = SIZES[i % len(SIZES)]
                coarse = generator.integers(96 * label, 160 + 96 * label, (5, 5, 3)).astype(np.uint8)
                photo = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
                photo.save(folder / f"{i}.jpg", quality=90)
    return root


@pytest.fixture
def fit(tmp_path: Path, photo_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Run `train.main` in the test's folder, on the folder of photos and a small random backbone; figures are blank."""
    from headstart.train import main

    def run(*options: str, folder: str = "run") -> Path:
        monkeypatch.chdir(tmp_path)
        with blank_figures():
            main([*list_options(photo_folder), f"--trainer.default_root_dir={folder}", *options])
        return tmp_path / folder

    return run


def list_options(photos: Path) -> list[str]:
    stream = {
        "photos.init_args.root": str(photos),
        "backbone.name": "mobilenet_v2",
        "backbone.weights": "random",
        "backbone.model_args": "{width_mult: 0.25}",
        "backbone.preprocessing": "{resize: 32, crop: 32}",
        "num_workers": "0",
        "max_samples": "24",
        "orderings": "2",
    }
    return [
        "--data=headstart.datamodules.FeatureStream",
        "--data.photos=headstart.datamodules.ClassFolders",
        *(f"--data.{name}={value}" for name, value in stream.items()),
        "--model.baseline=headstart.modules.GradientDescent",
        "--model.methods={mean: headstart.modules.NearestClassMean}",
        "--criterion.consecutive=3",
        "--trainer.accelerator=cpu",
        "--trainer.logger=false",
    ]
