"""`headstart portal`: the web server and the process that scores, which is started again if it ends."""

import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from headstart.output.errors import Terminated, UserError
from headstart.output.files import output_folder
from headstart.output.parser import one_line_errors
from headstart.output.printable import say
from headstart.portal.database import Database, make_private_folder
from headstart.portal.settings import Settings, parse_settings
from headstart.portal.teams import add_team
from headstart.portal.web.app import create_app
from headstart.portal.web.state import Portal
from headstart.portal.worker import SERVER_VARIABLE

DEMONSTRATION_TEAM = "demo"
# Time that a worker has to finish its scoring before it is killed; feature rows that it has computed stay stored.
PATIENCE_SECONDS = 10
PAUSE_SECONDS = 5
POLL_SECONDS = 0.2
_log = logging.getLogger(__name__)


def serve(settings: Settings, args: Sequence[str]) -> None:
    """Serve a portal until Ctrl-C or SIGTERM.

    Args:
        settings: The organiser's settings.
        args: The options that they were read from, for the process that scores.

    Raises:
        UserError: A file of the settings cannot be read or written, or the port is in use.
    """
    make_private_folder(output_folder("data", settings.data))
    listening = _listen(settings)
    if settings.demonstration:
        _write_stimuli(settings)
    if settings.worker:
        # The process that scores would end at each start without them.
        settings.find_datasets()

    app = create_app(settings)
    portal: Portal = app.state.portal

    address = settings.url or f"http://{settings.host}:{listening.getsockname()[1]}"
    say(f"The portal is at {address}. Ctrl-C ends it.")
    if held_back := portal.held_back:
        command = "headstart portal admin submissions rescore held_back"
        say(f"Scored with other documents or rules, and on no leaderboard: {held_back}. `{command}` scores them again.")
    if settings.demonstration:
        say(_demonstration_team(portal.database))

    stopping = threading.Event()
    worker = threading.Thread(target=keep_working, args=(args, stopping))
    try:
        if settings.worker:
            worker.start()
        with suppress(KeyboardInterrupt, Terminated):
            uvicorn.Server(server_config(app)).run(sockets=[listening])
    finally:
        stopping.set()
        if settings.worker:
            worker.join()
        listening.close()


def server_config(app: FastAPI) -> uvicorn.Config:
    """Return how an application is served."""
    return uvicorn.Config(app, ws="none", server_header=False, log_level="warning", timeout_graceful_shutdown=5)


def keep_working(args: Sequence[str], stopping: threading.Event) -> None:
    """Keep a process that scores running until an event is set; it then has some seconds to finish its scoring.

    Args:
        args: Options of the process.
        stopping: The event.
    """
    command = [sys.executable, "-P", "-m", "headstart", "portal", "worker", *args]
    environment = {**os.environ, SERVER_VARIABLE: str(os.getpid())}
    while True:
        # Ctrl-C must reach the server alone, which ends this process in order.
        process = subprocess.Popen(command, env=environment, start_new_session=True)
        while process.poll() is None and not stopping.wait(POLL_SECONDS):
            pass
        if stopping.is_set():
            break
        _log.warning("the worker ended with %d; it restarts in %d s", process.returncode, PAUSE_SECONDS)
        if stopping.wait(PAUSE_SECONDS):
            return

    process.terminate()
    try:
        process.wait(PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listening = socket.create_server((settings.host, int(settings.port)), family=family)
    except (OSError, OverflowError) as error:
        # Python's message repeats the address.
        reason = (getattr(error, "strerror", None) or str(error)).partition(" (while ")[0]
        raise UserError(f"port: cannot listen at {settings.host} {settings.port} ({reason}); choose another") from error
    # Without a delay, an answer's body follows its head at once, instead of after the acknowledgement 40 ms later.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def _demonstration_team(database: Database) -> str:
    """Add a team to try the portal with, and return a sentence with its token, which is stored nowhere."""
    try:
        with database.writing() as session:
            token = add_team(session, DEMONSTRATION_TEAM)
    except UserError:
        command = f"headstart portal admin teams revoke {DEMONSTRATION_TEAM}"
        return f"The team {DEMONSTRATION_TEAM!r} has a token. `{command}`, then `teams add`, prints another one."
    return f"Log in as the team {DEMONSTRATION_TEAM!r} with the token {token}, which is not shown again."


def _write_stimuli(settings: Settings) -> None:
    """Draw the stimuli of a demonstration, and write their catalog, unless it exists."""
    if settings.datasets is None or settings.catalog is None:
        raise UserError("demonstration: needs the settings datasets and catalog, where drawings are written")
    folder = Path(settings.datasets).expanduser().absolute() / "drawn_pets"
    catalog = Path(settings.catalog).expanduser().absolute()
    if not catalog.exists():
        _run("write-photos", str(folder), "--count=120")
        _run("write-catalog", str(folder), f"--output={catalog}")


def _run(*words: str) -> None:
    """Run a command of the suite."""
    command = [sys.executable, "-P", "-m", "headstart", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = " ".join(done.stderr.split()).removeprefix("error: ")
        raise UserError(f"demonstration: stimuli cannot be drawn ({reason})")


def main(args: Sequence[str] | None = None) -> None:
    """Serve a portal.

    Args:
        args: Options, the portal's settings; those of the process by default.
    """
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s", stream=sys.stderr)
    options = list(sys.argv[1:] if args is None else args)
    with one_line_errors():
        serve(parse_settings("Serve a portal that receives, scores and ranks submissions.", options), options)
