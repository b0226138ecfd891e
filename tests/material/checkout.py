"""A copy of the checkout in which a shell runs commands, and a local server of the files that they download."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import venv
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
from PIL import Image

from headstart.tests.material import warm_python
from headstart.tests.material.root import ROOT

TRAINING, VALIDATION = 500, 200
WEIGHTS = {
    "mobilenet_v2-b0353104": "mobilenet_v2",
    "mobilenet_v2-7ebf99e0": "mobilenet_v2",
    "resnet18-f37072fd": "resnet18",
    "resnet50-11ad3fa6": "resnet50",
}
# The response of the local server to every request of the dashboard's client, wandb.
ANSWER = {
    "viewer": {"id": "1", "username": "someone", "entity": "someone", "flags": "{}", "teams": {"edges": []}},
    "upsertSweep": {
        "sweep": {"name": "abcdefgh", "project": {"id": "1", "name": "p", "entity": {"id": "1", "name": "someone"}}},
        "configValidationWarnings": [],
    },
}


class Server(ThreadingHTTPServer):
    """Serves `folder/HOST/PATH`, and answers the dashboard's client."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(SimpleHTTPRequestHandler):
    def do_POST(self) -> None:
        if self.path != "/graphql":
            # The dashboard's client also asks whether its server accepts telemetry.
            self.send_error(404)
            return
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps({"data": ANSWER}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (named by http.server)
        pass


@contextmanager
def serve(folder: Path) -> Iterator[Server]:
    """Serve the files that commands download, at their original paths: dark cats, light dogs and untrained networks."""
    publish_cats_and_dogs(folder / "storage.googleapis.com/mledu-datasets")
    publish_networks(folder / "download.pytorch.org/models")
    with Server(folder) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def publish_networks(folder: Path) -> None:
    """Write untrained networks. Batch norms have statistics of dark and light input, so that features differ."""
    # Imported here, because the collection of tests must not import torch.
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


def write_photo(path: Path, light: bool, generator: np.random.Generator) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    colour = generator.integers(50 + 140 * light, 54 + 140 * light, 3)
    # The comment makes the bytes of every photo unique.
    Image.new("RGB", (36, 40), tuple(colour.tolist())).save(path, comment=str(path))


def publish_cats_and_dogs(folder: Path) -> None:
    base, generator = folder / "cats_and_dogs_filtered", np.random.default_rng(0)
    for split, count in (("train", TRAINING), ("validation", VALIDATION)):
        for i in range(count):
            name = ("cat", "dog")[i % 2]
            write_photo(base / split / f"{name}s" / f"{name}.{i}.jpg", name == "dog", generator)
    with zipfile.ZipFile(folder / "cats_and_dogs_filtered.zip", "w") as archive:
        for path in base.rglob("*.jpg"):
            archive.write(path, path.relative_to(folder))


def copy_checkout(folder: Path) -> None:
    """Copy the files of the working tree that git does not ignore."""
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
        environment: Environment variables that are added to those of this process, or replace them.
        output: File that takes what the commands print.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], output: Path) -> None:
        self.output = output
        read_end, self._write_end = os.pipe()
        self._exit_codes = os.fdopen(read_end)
        with output.open("w") as stream:
            self._shell = subprocess.Popen(
                ["bash", "--noprofile", "--norc"],
                cwd=folder,
                env={**os.environ, **environment},
                stdin=subprocess.PIPE,
                stdout=stream,
                stderr=stream,
                text=True,
                pass_fds=[self._write_end],
            )

    def run(self, command: str) -> tuple[int, str]:
        """Run one line, and return its exit code and output."""
        before = self.output.stat().st_size
        assert self._shell.stdin is not None
        self._shell.stdin.write(f"{command}\necho $? >&{self._write_end}\n")
        self._shell.stdin.flush()
        code = int(self._exit_codes.readline())
        return code, self.output.read_bytes()[before:].decode()

    def close(self) -> None:
        """End the session."""
        self._shell.communicate()
        self._exit_codes.close()
        os.close(self._write_end)


@contextmanager
def open_shell(folder: Path, url: str, environment: Mapping[str, str]) -> Iterator[Shell]:
    """Open a shell in a copy of the checkout that is already set up; its `python` forks a process with all imports."""
    copy_checkout(folder)
    with tempfile.TemporaryDirectory() as short:
        socket, client = Path(short) / "socket", Path(short) / "client.py"
        client.write_text(warm_python.CLIENT)
        binaries = folder / ".venv" / "bin"
        venv.create(folder / ".venv", symlinks=True)
        for name, words in {
            "python": "",
            "headstart": " -m headstart",
            "pip": " -m pip",
            "pytest": " -m pytest",
            "wandb": " -m wandb",
        }.items():
            (binaries / name).unlink(missing_ok=True)
            (binaries / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" -SE {client} {socket}{words} "$@"\n')
            (binaries / name).chmod(0o755)
        for stamp in (".ready", ".ready-dev"):
            (folder / ".venv" / stamp).touch()
        command = [sys.executable, warm_python.__file__, str(socket), url]
        python = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert python.stdout is not None
        assert python.stdout.readline() == b"ready\n"
        shell = Shell(folder, environment, Path(short) / "output")
        try:
            yield shell
        finally:
            # The group includes the commands that still run in the background.
            os.killpg(python.pid, signal.SIGKILL)
            python.communicate()
            shell.close()
