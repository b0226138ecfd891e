"""Photos that a CSV file lists with their labels."""

import csv
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from jsonargparse.typing import OpenUnitInterval

from headstart.datamodules.photos.photo_source import PhotoFiles, Photos, SplitSource, number_classes
from headstart.output.errors import UserError
from headstart.output.seeds import Seed

NEEDED = ("path", "label")
SPLITS = ("train", "validation", "val")
# Malformed lines that a message quotes.
QUOTED = 5


class CsvPhotos(SplitSource):
    """Photos that a CSV file lists, one per line, with the columns path, label and optionally split.

    Paths are relative to the file's folder. The classes are numbered in the order of their labels. The split is train,
    validation or val. Without that column, a seeded part is held out for validation.

    Args:
        file: The CSV file, in UTF-8. Its name without the ending is the data set's name in the results.
        validation_fraction: Share of each class that is held out for validation, if there is no column split.
        split_seed: Seed of that split.
    """

    def __init__(self, file: str, validation_fraction: OpenUnitInterval = 0.2, split_seed: Seed = 0) -> None:
        self.file = Path(file).expanduser()
        self.name = self.file.stem
        self.validation_fraction = validation_fraction
        self.split_seed = split_seed

    def splits(self) -> tuple[Photos, Photos | None]:
        """List the photos."""
        records = self._read()
        photos = self._photos(records)
        if "split" not in records[0]:
            return photos, None
        is_train = np.array([record["split"] == "train" for record in records])
        return photos.subset(np.flatnonzero(is_train)), photos.subset(np.flatnonzero(~is_train))

    def pictures(self) -> Photos:
        """Return all photos in the order of the lines; those without a label have -1."""
        return self._photos(self._read(needed=("path",)))

    def _photos(self, records: list[dict[str, str]]) -> PhotoFiles:
        labels, classes = number_classes([record.get("label", "") for record in records])
        return PhotoFiles(self.file.parent, [record["path"] for record in records], labels, classes)

    def _read(self, needed: Sequence[str] = NEEDED) -> list[dict[str, str]]:
        """Read one record for each photo, with the columns that are needed; a UserError quotes malformed lines."""
        reader = csv.reader(io.StringIO(self._text(), newline=""), skipinitialspace=True, strict=True)
        records: list[dict[str, str]] = []
        problems: list[str] = []
        lines: dict[str, int] = {}

        try:
            header = [name.strip() for name in next(reader, [])]
            allowed = [*NEEDED, "split"]
            optional = [name for name in allowed if name not in needed]
            if not {*needed} <= {*header} <= {*allowed} or len({*header}) < len(header):
                raise UserError(
                    f"file: {self.file} must have the columns {', '.join(needed)} and perhaps {', '.join(optional)}; "
                    f"it has {', '.join(header) or 'none'}"
                )

            for values in filter(None, reader):
                record = dict(zip(header, map(_unquoted, values), strict=False))
                is_whole = len(values) == len(header)
                problem = self._problem(record, lines, needed) if is_whole else f"{len(values)} fields"
                if problem:
                    problems.append(f"line {reader.line_num}: {problem}")
                else:
                    lines[self._path(record)] = reader.line_num
                    records.append(record)
        except csv.Error as error:
            problems.append(f"line {reader.line_num}: {error}")

        if problems:
            more = f"; {len(problems) - QUOTED} more" if len(problems) > QUOTED else ""
            raise UserError(f"file: {self.file} has malformed lines; {'; '.join(problems[:QUOTED])}{more}")
        if not records:
            raise UserError(f"file: {self.file} lists no photo")
        return records

    def _text(self) -> str:
        try:
            return self.file.read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = error.object[: error.start].count(b"\n") + 1
            msg = f"file: {self.file} must be in UTF-8; line {line} is not"
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            msg = f"file: {self.file} cannot be read ({reason}); give a CSV file with the columns path and label"
        raise UserError(msg)

    def _path(self, record: Mapping[str, str]) -> str:
        """Return the path of a photo in its normal form."""
        return os.path.normpath(os.path.join(self.file.parent, record["path"]))  # noqa: PTH118 - as below

    def _problem(self, record: Mapping[str, str], lines: Mapping[str, int], needed: Sequence[str]) -> str:
        """Return the problem of a record, given the lines of earlier paths; an empty text if it has none."""
        empty = [name for name in needed if not record[name]]
        if empty:
            return f"no {empty[0]}"
        if record.get("split", "train") not in SPLITS:
            return f"split {record['split']!r} is none of {', '.join(SPLITS)}"
        if (path := self._path(record)) in lines:
            return f"{record['path']!r} once more, after line {lines[path]}"
        is_there = os.path.isfile(path)  # noqa: PTH113 - a Path for each of many files takes long
        return "" if is_there else f"there is no file {record['path']!r}"


def _unquoted(field: str) -> str:
    """Return a field without spaces around it, and without quotes that a space or tab outside of them has kept."""
    text = field.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
