"""A portal at an address, for browsers."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from headstart.portal.serve import server_config
from headstart.portal.settings import Settings
from headstart.portal.web.app import create_app


@contextmanager
def serve_portal(settings: Settings) -> Iterator[str]:
    """Serve a portal from this process at a free port, and yield its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(server_config(create_app(settings)))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()
