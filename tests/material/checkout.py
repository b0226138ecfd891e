"""A copy of the checkout in which a shell runs commands, and a server for what these download."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image

from headstart.tests.material.file_servers import FileServer, serve_files
from headstart.tests.material.root import ROOT

TRAINING, VALIDATION = 500, 200
WEIGHTS = {
    "mobilenet_v2-b0353104": "mobilenet_v2",
    "mobilenet_v2-7ebf99e0": "mobilenet_v2",
    "resnet18-f37072fd": "resnet18",
    "resnet50-11ad3fa6": "resnet50",
}
# Stamp of what the Makefile has installed.
READY = ".ready"
# Networks that take large photos see small ones, in a fiftieth of the time.
SMALL_PHOTOS = """

def _start_small(self, pictures, large, *others, start=Decoder.__init__, **options):
    small = {"resize": 32, "crop": 32} if large.crop > 64 else {}
    start(self, pictures, __import__("dataclasses").replace(large, **small), *others, **options)


Decoder.__init__ = _start_small
"""
# What Python imports first: it sends requests over https to the local server.
REDIRECTION = """
import os, requests

def send_there(session, request, send=requests.Session.send, **options):
    request.url = request.url.replace("https://", os.environ["REDIRECTED_TO"] + "/")
    return send(session, request, **options)

requests.Session.send = send_there
"""
# The response of the dashboard's server to every request.
ANSWER = {
    "viewer": {"id": "1", "username": "someone", "entity": "someone", "flags": "{}", "teams": {"edges": []}},
    "upsertSweep": {
        "sweep": {"name": "abcdefgh", "project": {"id": "1", "name": "p", "entity": {"id": "1", "name": "someone"}}},
        "configValidationWarnings": [],
    },
}


@contextmanager
def serve() -> Iterator[FileServer]:
    """Serve what the commands download, by its host and path, and answer the dashboard."""
    with serve_files() as server:
        server.files["/storage.googleapis.com/mledu-datasets/cats_and_dogs_filtered.zip"] = archive_photos()
        server.files["/graphql"] = json.dumps({"data": ANSWER}).encode()
        yield server


def archive_photos() -> bytes:
    """Return an archive of dark cats and light dogs, no two of which are equal by their bytes."""
    generator = np.random.default_rng(0)
    with io.BytesIO() as content:
        with zipfile.ZipFile(content, "w") as archive:
            for split, count in (("train", TRAINING), ("validation", VALIDATION)):
                for index in range(count):
                    name = ("cat", "dog")[index % 2]
                    path = f"cats_and_dogs_filtered/{split}/{name}s/{name}.{index}.jpg"
                    colour = generator.integers(50, 54, 3) + 140 * (name == "dog")
                    with archive.open(path, "w") as file:
                        Image.new("RGB", (36, 40), tuple(colour.tolist())).save(file, "JPEG", comment=path)
        return content.getvalue()


def write_networks(folder: Path) -> None:
    """Write networks without training as if downloaded; their features tell dark from light, by photos of both."""
    # Whoever collects the tests needs no torch for this.
    import torch
    from torchvision.models import get_model

    folder.mkdir(parents=True)
    light = torch.arange(32).view(-1, 1, 1, 1) % 2
    for file, model in WEIGHTS.items():
        torch.manual_seed(0)
        network = get_model(model).train()
        for layer in network.modules():
            if isinstance(layer, torch.nn.BatchNorm2d):
                layer.momentum = 1
        with torch.inference_mode():
            network((2 * light - 1 + 0.2 * torch.rand(32, 3, 1, 1)).expand(-1, -1, 64, 64))
        torch.save(network.state_dict(), folder / f"{file}.pth")


def copy_checkout(folder: Path) -> None:
    """Copy what a clone would hold, from the working tree."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)


class Shell:
    """One shell session in a folder.

    Args:
        folder: The folder.
        environment: What differs from this process's environment variables.
        output: File that takes what the commands print.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], output: Path) -> None:
        self.output = output
        ended, self._end = os.pipe()
        self._codes = os.fdopen(ended)
        with output.open("w") as stream:
            self._shell = subprocess.Popen(
                ["bash", "--noprofile", "--norc"],
                cwd=folder,
                env={**os.environ, **environment},
                stdin=subprocess.PIPE,
                stdout=stream,
                stderr=stream,
                text=True,
                pass_fds=[self._end],
                start_new_session=True,
            )

    def run(self, command: str) -> tuple[int, str]:
        """Run one line, and give its exit code and what it printed."""
        before = self.output.stat().st_size
        assert self._shell.stdin is not None
        self._shell.stdin.write(f"{command}\necho $? >&{self._end}\n")
        self._shell.stdin.flush()
        code = int(self._codes.readline())
        return code, self.output.read_bytes()[before:].decode()

    def close(self) -> None:
        """End the session, with all commands that are still in the background."""
        os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.communicate()
        self._codes.close()
        os.close(self._end)


@contextmanager
def open_shell(folder: Path, url: str, environment: Mapping[str, str]) -> Iterator[Shell]:
    """Open a shell in a copy of the checkout whose set-up is behind it, with this process's Python and packages.

    Args:
        folder: Where all is written; the copy is `folder / "headstart"`, as the package is called.
        url: Where requests of https go, as `URL/HOST/PATH`.
        environment: As for `Shell`.
    """
    checkout = folder / "headstart"
    copy_checkout(checkout)
    with (checkout / "datamodules" / "decoding.py").open("a") as file:
        file.write(SMALL_PHOTOS)
    write_networks(folder / "torch" / "hub" / "checkpoints")
    (folder / "start").mkdir()
    (folder / "start" / "sitecustomize.py").write_text(REDIRECTION)
    (checkout / ".venv").mkdir()
    for path in Path(sys.prefix).iterdir():
        if not path.name.startswith(READY):
            (checkout / ".venv" / path.name).symlink_to(path)
    for stamp in (READY, f"{READY}-dev"):
        (checkout / ".venv" / stamp).touch()

    path = os.pathsep.join([str(folder / "start"), str(folder)])
    own = {"PYTHONPATH": path, "REDIRECTED_TO": url, "TORCH_HOME": str(folder / "torch")}
    shell = Shell(checkout, {**own, **environment}, folder / "output")
    try:
        yield shell
    finally:
        shell.close()
