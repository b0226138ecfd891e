"""Tar shards as the package webdataset writes them, and PNG pictures for them."""

import io
import tarfile
from collections.abc import Iterable
from pathlib import Path

from PIL import Image


def png(red: int) -> bytes:
    """Return a picture in PNG that is known by its red."""
    file = io.BytesIO()
    Image.new("RGB", (6, 4), (red, 0, 0)).save(file, "PNG")
    return file.getvalue()


def write_tar(path: Path, members: Iterable[tuple[str, bytes]], form: int = tarfile.PAX_FORMAT) -> Path:
    """Write members into an archive; like the package webdataset with fractions of seconds, which need pax headers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=form) as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            member.mtime = 1.5
            archive.addfile(member, io.BytesIO(content))
    return path


def write_shard(path: Path, reds: Iterable[int], form: int = tarfile.PAX_FORMAT) -> Path:
    """Write pictures of classes `even` and `odd`, each with the label behind it."""
    members = [
        member
        for red in reds
        for member in ((f"{red:06d}.png", png(red)), (f"{red:06d}.cls", b"odd" if red % 2 else b"even"))
    ]
    return write_tar(path, members, form)
