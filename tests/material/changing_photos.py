"""Photos that change for a moment while a command reads them, and what the command then leaves in the cache."""

import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image

from headstart.output.errors import UserError

VICTIM = "train/dark/1.jpg"


def swap(path: Path) -> None:
    path.write_bytes((path.parents[2] / "another.jpg").read_bytes())


def replace(path: Path) -> None:
    shutil.copy(path.parents[2] / "another.jpg", path.parents[2] / "copy.jpg")
    (path.parents[2] / "copy.jpg").replace(path)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def rename(path: Path) -> None:
    path.rename(path.with_name("renamed.jpg"))


def fail(path: Path) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


FAULTS = {"swapped": swap, "replaced": replace, "cut": cut, "renamed": rename, "unreadable": fail}


class Moments:
    """Counts when a folder of photos is listed or its victim opened, and changes the victim between two such moments.

    Attributes:
        first: The moment from which the victim is changed; None for never.
        last: The moment at which it is intact again.
        passed: Moments that have passed.
        opened: The last moment at which the victim was opened.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.victim, self.intact = folder, folder / VICTIM, (folder / VICTIM).read_bytes()
        self.first: int | None = None
        self.passed, self.last, self.opened = 0, 0, 0
        self.active = False
        self.messages: list[str] = []

    def look(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.active or event not in {"open", "os.listdir", "os.scandir"}:
            return
        path = str(arguments[0])
        if path != str(self.victim) and not (event != "open" and path.startswith(str(self.folder))):
            return
        self.active = False
        try:
            self.pass_by(path)
        finally:
            self.active = True

    def pass_by(self, path: str) -> None:
        number, self.passed = self.passed, self.passed + 1
        self.opened = number if path == str(self.victim) else self.opened
        if self.first is None or not self.first <= number <= self.last:
            return
        if number == self.last:
            self.mend()
        elif self.fault is not fail:
            if number == self.first:
                self.fault(self.victim)
        elif path == str(self.victim):
            fail(self.victim)

    def mend(self) -> None:
        self.victim.with_name("renamed.jpg").unlink(missing_ok=True)
        self.victim.write_bytes(self.intact)

    def run(
        self, command: Callable[[], Any], fault: Callable[[Path], None] = fail, first: int | None = None, last: int = 0
    ) -> Any:
        """Run something while the victim is changed, and mend it; a mistake that is reported in a line gives None."""
        self.fault, self.first, self.last, self.passed = fault, first, last, 0
        self.active = True
        try:
            return command()
        except (UserError, SystemExit) as error:
            self.messages.append(str(error))
            return None
        finally:
            self.active = False
            self.mend()


@contextmanager
def watched(folder: Path) -> Iterator[Moments]:
    """Keep three photos of each class in a folder, write another one beside them, and count the moments within."""
    for path in folder.glob("*/*/*"):
        if int(path.stem) > 2:
            path.unlink()
    Image.effect_noise((40, 40), 90).convert("RGB").save(folder / "another.jpg")
    moments = Moments(folder)
    # A hook cannot be removed.
    sys.addaudithook(moments.look)
    yield moments
    moments.active = False
