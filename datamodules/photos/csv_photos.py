"""Photos that a CSV file lists with their labels."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping
from pathlib import Path

from jsonargparse.typing import NonNegativeInt, OpenUnitInterval

from headstart.datamodules.photos.class_folders import in_order
from headstart.datamodules.photos.held_out import SplitSource
from headstart.datamodules.photos.photo_source import PhotoFiles, Photos
from headstart.output.errors import UserError

NEEDED = ("path", "label")
SPLITS = ("train", "validation", "val")
# Malformed lines that a message quotes.
QUOTED = 5


class CsvPhotos(SplitSource):
    """Photos that a CSV file lists: one per line, with the columns path, label and, where there is a split, split.

    Paths are relative to the file's folder. The classes are numbered in the order of their labels. The split is
    train or validation (val will do); without that column, a seeded part is held out for validation.

    Args:
        file: The CSV file, in UTF-8. Its name without the ending is the data set's name in the results.
        validation_fraction: Share of each class that is held out for validation, where there is no column split.
        split_seed: Seed of that split.
    """

    def __init__(self, file: str, validation_fraction: OpenUnitInterval = 0.2, split_seed: NonNegativeInt = 0) -> None:
        self.file = Path(file).expanduser()
        self.name = self.file.stem
        self.validation_fraction = validation_fraction
        self.split_seed = split_seed

    def splits(self) -> tuple[Photos, Photos | None]:
        """List the photos."""
        lines = self._read()
        classes = sorted({line["label"] for line in lines}, key=in_order)
        if "split" not in lines[0]:
            return self._photos(lines, classes), None
        train = [line for line in lines if line["split"] == "train"]
        validation = [line for line in lines if line["split"] != "train"]
        return self._photos(train, classes), self._photos(validation, classes)

    def _photos(self, lines: list[dict[str, str]], classes: list[str]) -> PhotoFiles:
        numbers = {name: number for number, name in enumerate(classes)}
        labels = [numbers[line["label"]] for line in lines]
        return PhotoFiles(self.file.parent, [line["path"] for line in lines], labels, classes)

    def _read(self) -> list[dict[str, str]]:
        reader = csv.reader(io.StringIO(self._text(), newline=""), strict=True)
        lines: list[dict[str, str]] = []
        problems: list[str] = []
        places: dict[str, int] = {}
        try:
            header = [field.strip() for field in next(reader, [])]
            if sorted(header) not in (sorted(NEEDED), sorted([*NEEDED, "split"])):
                found = ", ".join(header) or "none"
                raise UserError(
                    f"file: {self.file} must have the columns path, label and perhaps split; it has {found}"
                )
            for fields in filter(None, reader):
                line = dict(zip(header, (field.strip() for field in fields), strict=False))
                problem = f"{len(fields)} fields" if len(fields) != len(header) else self._problem(line, places)
                if problem:
                    problems.append(f"line {reader.line_num}: {problem}")
                else:
                    places[self._place(line)] = reader.line_num
                    lines.append(line)
        except csv.Error as error:
            problems.append(f"line {reader.line_num}: {error}")
        if problems:
            more = f"; {len(problems) - QUOTED} more" if len(problems) > QUOTED else ""
            raise UserError(f"file: {self.file} has malformed lines; {'; '.join(problems[:QUOTED])}{more}")
        if not lines:
            raise UserError(f"file: {self.file} lists no photo")
        return lines

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

    def _place(self, line: Mapping[str, str]) -> str:
        """Give a photo's path, the same however it is written."""
        return os.path.normpath(self.file.parent / line["path"])

    def _problem(self, line: Mapping[str, str], places: Mapping[str, int]) -> str:
        """Say what is wrong with one line; nothing, where all is right."""
        empty = [name for name in NEEDED if not line[name]]
        if empty:
            return f"no {empty[0]}"
        if line.get("split", "train") not in SPLITS:
            return f"split {line['split']!r} is none of {', '.join(SPLITS)}"
        if self._place(line) in places:
            return f"{line['path']!r} once more, after line {places[self._place(line)]}"
        return "" if (self.file.parent / line["path"]).is_file() else f"there is no file {line['path']!r}"
