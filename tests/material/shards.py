"""Pictures in PNG, and tar shards of them as the package webdataset writes them."""

import io
import tarfile
from collections.abc import Iterable
from pathlib import Path

from PIL import Image

from headstart.datamodules.photos.pictures import Pictures


def png(red: int) -> bytes:
    """Return a picture in PNG that is known by its red."""
    file = io.BytesIO()
    Image.new("RGB", (6, 4), (red, 0, 0)).save(file, "PNG")
    return file.getvalue()


def write_shard(path: Path, reds: Iterable[int]) -> Path:
    """Write pictures of class 0, of an even red, and class 1, each with the label behind it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as archive:
        for red in reds:
            for ending, content in (("png", png(red)), ("cls", str(red % 2).encode())):
                member = tarfile.TarInfo(f"{red:06d}.{ending}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return path


def reds(pictures: Pictures) -> list[int]:
    """Return the red of the first pixel of each picture."""
    return [pictures.read(index).getpixel((0, 0))[0] for index in range(len(pictures))]  # type: ignore[index]
