"""Where the pictures of a tar shard are, with their digests and labels: all that one pass finds."""

import hashlib
import json
from array import array
from typing import Any

import numpy as np

from headstart.datamodules.photos.file_indexes import Arrays
from headstart.datamodules.photos.folder_listing import SUFFIXES
from headstart.datamodules.photos.locations import open_stream
from headstart.datamodules.photos.packed_names import END
from headstart.datamodules.photos.tar_members import (
    CutOffError,
    DamagedError,
    Members,
    PartialError,
    TrailingError,
    read_members,
)
from headstart.output.errors import UserError

COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd"}

# What a member of a sample is.
OTHER, LABEL, PICTURE = range(3)


def index_tar(location: str, label: str | None, image: str | None) -> Arrays:
    """Index the samples of a shard: members that follow each other and have the same key, as WebDataset groups them.

    The key of a member is its name up to the first dot of the base name. Its ending follows the dot.

    Args:
        location: The archive.
        label: Key of the .json member that holds the class; None for the text of the .cls member.
        image: Ending of the picture; None for the endings of pictures.

    Returns:
        `offsets` and `sizes` of pictures, and `sha256`, `[samples, 32]`. `labels` are indices of `classes`, -1 without
        a label. `keys` are 64 bits of a digest of each key. `names` of pictures have a NUL behind each, and `classes`
        is JSON.

    Raises:
        UserError: It is no tar archive, or is cut off or damaged. Or a picture or label is a link or a sparse file. Or
            a sample has no picture or several, or its label is no label.
        OSError: It cannot be read.
    """
    samples = _Samples(location, label, image)
    with open_stream(location) as stream:
        try:
            for members in read_members(stream, samples.wants):
                samples.add(members)
        except (CutOffError, DamagedError, PartialError, TrailingError) as error:
            raise UserError(_explain(error, location, len(samples.offsets))) from error

    samples.end()
    if not samples.offsets:
        raise UserError(f"the shard {location} holds no picture; leave it out")
    return samples.arrays()


def _explain(error: Exception, location: str, intact: int) -> str:
    """Return what is wrong with a shard, of which so many pictures are intact, and how to mend it."""
    match error:
        case CutOffError():
            return (
                f"the shard {location} is cut off ({error}); {intact} pictures before are intact; fetch or write it "
                "again, or unpack it and pack what is intact (tar --sort=name)"
            )
        case PartialError():
            return (
                f"the member {error.name!r} of the shard {location} is {error.what}; unpack the shard, and pack it "
                f"again {error.packed_with}"
            )
        case TrailingError():
            return (
                f"the shard {location} has data after its end mark, as archives joined by cat do; unpack it with "
                "tar --ignore-zeros, and pack it again"
            )
        case _:
            return _explain_damage(location, intact)


def _explain_damage(location: str, intact: int) -> str:
    with open_stream(location) as stream:
        beginning = stream.read(8)
    packed = next((name for mark, name in COMPRESSED.items() if beginning.startswith(mark)), None)
    if packed:
        return (
            f"the shard {location} is compressed ({packed}), and pictures cannot be read from its middle; "
            "unpack it to a plain .tar"
        )
    found = f"is damaged; {intact} pictures before are intact" if intact else "is no tar archive"
    return f"the shard {location} {found}; fetch or write it again"


class _Samples:
    """Collects the samples of a shard, member by member; arguments as for `index_tar`."""

    def __init__(self, location: str, label: str | None, image: str | None) -> None:
        self.location = location
        self.label = label
        self.image = image
        self.labelled_by = "cls" if label is None else "json"
        self.offsets, self.sizes, self.labels = array("q"), array("q"), array("q")
        self.sha256, self.keys, self.names = bytearray(), bytearray(), bytearray()
        self.classes: dict[str, int] = {}
        # Numbers of the classes by the contents of .cls members.
        self.numbers: dict[bytes, int] = {}
        # Whether an ending is that of a picture or a label.
        self.kinds: dict[str, int] = {}
        # Key, beginning of names and endings of the sample that is being read.
        self.key, self.stem = "", END.decode()
        self.endings: list[str] = []

    def wants(self, name: str) -> bool:
        """Whether a member is a picture or the label."""
        return self._kind(_split(name)[1].lower()) != OTHER

    def add(self, members: Members) -> None:
        """Add members."""
        contents, names = memoryview(members.buffer), []
        for name, start, size in zip(members.names, members.starts, members.sizes, strict=True):
            ending = name[len(self.stem) :]
            if not name.startswith(self.stem) or "/" in ending:
                key, ending = _split(name)
                if ending:
                    self._begin(key)
            if not ending:
                continue
            self.endings.append(ending)

            kind = self.kinds.get(ending)
            if kind is None:
                kind = self.kinds[ending] = self._kind(ending.lower())
            if kind == OTHER:
                continue
            first = start - members.first
            content = contents[first : first + size]
            if kind == LABEL:
                self.number = self._number(bytes(content))
                continue
            self.pictures += 1
            names.append(name)
            self.offsets.append(start)
            self.sizes.append(size)
            self.sha256 += hashlib.sha256(content).digest()
            self.keys += hashlib.blake2b(self.key.encode(errors="surrogateescape"), digest_size=8).digest()
        self.names += "".join(f"{name}\0" for name in names).encode(errors="surrogateescape")

    def _begin(self, key: str) -> None:
        """Begin a sample."""
        self.end()
        self.key, self.stem, self.endings, self.pictures, self.number = key, f"{key}.", [], 0, -1

    def end(self) -> None:
        """End the sample that is being read."""
        if not self.endings:
            return
        if self.pictures != 1:
            problem = (
                "has several pictures; name the ending of one with image, or leave one in"
                if self.pictures
                else "has no picture; the members of a sample must follow each other (tar --sort=name), or leave it out"
            )
            listed = ", ".join(f".{ending.lower()}" for ending in self.endings)
            raise UserError(f"the sample {self.key!r} of the shard {self.location} ({listed}) {problem}")
        self.labels.append(self.number)

    def arrays(self) -> Arrays:
        """Return all samples."""
        return {
            "offsets": np.frombuffer(self.offsets, np.int64),
            "sizes": np.frombuffer(self.sizes, np.int64),
            "labels": np.frombuffer(self.labels, np.int64),
            "sha256": np.frombuffer(self.sha256, np.uint8).reshape(-1, 32),
            "keys": np.frombuffer(self.keys, np.uint64),
            "names": np.frombuffer(self.names, np.uint8),
            "classes": np.array(json.dumps([*self.classes])),
        }

    def _kind(self, ending: str) -> int:
        """Return what a member with an ending in lower case is."""
        if ending == self.labelled_by:
            return LABEL
        is_picture = ending == self.image if self.image else f".{ending.rpartition('.')[2]}" in SUFFIXES
        return PICTURE if is_picture else OTHER

    def _number(self, content: bytes) -> int:
        """Return the index of the class in the content of a label's member; -1 if it has none."""
        if content in self.numbers:
            return self.numbers[content]
        try:
            label: Any = content.decode().strip() if self.label is None else json.loads(content).get(self.label)
        except (ValueError, AttributeError, RecursionError) as error:
            kind = "text in UTF-8" if self.label is None else "a JSON object"
            raise self._wrong_label(f"is not {kind}") from error
        if label is None or label == "":
            return -1
        if isinstance(label, bool) or not isinstance(label, str | int):
            raise self._wrong_label(f"has no text or whole number as {self.label!r}")
        number = self.classes.setdefault(str(label), len(self.classes))
        if self.label is None:
            self.numbers[content] = number
        return number

    def _wrong_label(self, problem: str) -> UserError:
        member = f"{self.key}.{self.labelled_by}"
        return UserError(f"the member {member!r} of the shard {self.location} {problem}; mend it")


def key_of(name: str) -> str:
    """Return the key of a member: its name up to the first dot of the base name."""
    return _split(name)[0]


def _split(name: str) -> tuple[str, str]:
    """Return the key of a member, and its ending, which is empty for hidden files and others without."""
    folder, slash, base = name.rpartition("/")
    stem, _, ending = base.partition(".")
    return folder + slash + stem, ending if stem else ""
