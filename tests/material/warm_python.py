"""Stands in for `python` and saves its imports: every command is a fork of one process that has them behind it.

    python warm_python.py SOCKET URL    in the root of a checkout

What the suite downloads from anywhere comes from URL/HOST/PATH instead, and networks see small photos.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import re
import runpy
import signal
import socket
import sys
import traceback
import urllib.request
from dataclasses import replace
from http.client import HTTPResponse
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headstart.datamodules.photos.pictures import Pictures
    from headstart.modules.networks.preprocessing import Preprocessing

# Run by a bare interpreter: hand over the words, the environment, the streams and signals, and end as the command did.
CLIENT = """
import json, os, signal, socket, sys
request = json.dumps([sys.argv[2:], dict(os.environ), os.getcwd()]).encode()
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(sys.argv[1])
    socket.send_fds(connection, [len(request).to_bytes(4, "big")], [0, 1, 2])
    connection.sendall(request)
    command = int.from_bytes(connection.recv(4), "big")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: os.kill(command, number))
    sys.exit(int(connection.recv(16)))
"""
SLOW_TO_IMPORT = (
    "headstart.cli.comparison",
    "headstart.evaluation.sources.transferability",
    "matplotlib.pyplot",
    "scipy.stats",
)
SMALL, LARGE = 32, 64


def redirect(url: str) -> None:
    """Send every request over https, by requests (pooch) or urllib (torch, torchvision), to the local server."""
    import requests

    class Redirecting(urllib.request.HTTPSHandler):
        def https_open(self, request: urllib.request.Request) -> HTTPResponse:
            return urllib.request.urlopen(f"{url}/{request.full_url.removeprefix('https://')}")  # type: ignore[no-any-return]

    urllib.request.install_opener(urllib.request.build_opener(Redirecting))
    send = requests.Session.send

    def send_there(session: requests.Session, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        assert request.url is not None
        request.url = request.url.replace("https://", f"{url}/")
        return send(session, request, **options)

    requests.Session.send = send_there  # type: ignore[method-assign, assignment]


def accept_other_content() -> None:
    """Accept other content in files with a checksum in their name."""
    import torch

    torch.hub.HASH_REGEX = re.compile("(?!)")


def shrink_photos() -> None:
    """Feed small photos to networks that take large ones, in a fiftieth of the time."""
    from headstart.datamodules.decoding import Decoder

    start = Decoder.__init__

    def start_small(self: Decoder, pictures: Pictures, large: Preprocessing, *others: Any, **options: Any) -> None:
        small = replace(large, resize=SMALL, crop=SMALL) if large.crop > LARGE else large
        start(self, pictures, small, *others, **options)

    Decoder.__init__ = start_small  # type: ignore[method-assign, assignment]


def receive(connection: socket.socket) -> tuple[list[str], dict[str, str], str, list[int]]:
    header, streams, _, _ = socket.recv_fds(connection, 4, 3)
    request = b""
    while len(request) < int.from_bytes(header, "big"):
        request += connection.recv(65536)
    words, environment, folder = json.loads(request)
    return words, environment, folder, streams


def answer(connection: socket.socket) -> None:
    """Run a command in a fork of this process, and tell the client its process and its exit code."""
    request = receive(connection)
    child = os.fork()
    if child == 0:
        connection.close()
        end_as(*request)
    connection.sendall(child.to_bytes(4, "big"))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    connection.sendall(str(code).encode())


def end_as(words: list[str], environment: dict[str, str], folder: str, streams: list[int]) -> None:
    """Run a command in this process and end it, without clearing away what all forks share."""
    code: int | str | None = 0
    try:
        become(words, environment, folder, streams)
    except SystemExit as exit_:
        code = exit_.code
    except BaseException:  # as the interpreter would print it
        traceback.print_exc()
        code = 1
    if isinstance(code, str):
        print(code, file=sys.stderr)
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else code is not None)


def become(words: list[str], environment: dict[str, str], folder: str, streams: list[int]) -> None:
    """Run a command in this process as `python words...` would."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    if words[0] == "-m":
        sys.argv = words[1:]
        sys.path.insert(0, folder)
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path.insert(0, str(Path(words[0]).parent.resolve()))
        runpy.run_path(words[0], run_name="__main__")


def main(path: str, url: str) -> None:
    # The suite of the folder, not the one that is installed.
    spec = spec_from_file_location("headstart", Path.cwd() / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    sys.modules["headstart"] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules["headstart"])
    for name in SLOW_TO_IMPORT:
        import_module(name)
    redirect(url)
    accept_other_content()
    shrink_photos()
    gc.freeze()  # collecting would copy what is shared
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forks that ended vanish
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        print("ready", flush=True)
        while True:
            connection, _ = listener.accept()
            # Commands may run in the background: each has a process that waits for it.
            if os.fork() == 0:
                listener.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                answer(connection)
                os._exit(0)
            connection.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
