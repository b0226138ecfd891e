"""Tar shards as the package webdataset writes them, and PNG pictures for them."""

import gzip
import io
import tarfile
from collections.abc import Iterable
from pathlib import Path

from PIL import Image

from headstart.datamodules.photos.packed_photos import PackedPhotos


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


def reds(photos: PackedPhotos) -> list[int]:
    """Return the red of the first pixel of each photo."""
    return [photos.read(index).getpixel((0, 0))[0] for index in range(len(photos))]  # type: ignore[index]


def compress(path: Path) -> None:
    """Compress a file in place."""
    path.write_bytes(gzip.compress(path.read_bytes()))
