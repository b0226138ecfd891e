"""Stimuli by the million: their names in one piece of memory, and a stimulus made of them when it is asked for."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import overload

from headstart.contract.names import canonical_stimulus
from headstart.contract.schema import Stimulus


class StimulusTable(Sequence[Stimulus]):
    """A list of stimuli that takes little more memory than the bytes of their names.

    Args:
        stimuli: What it holds at first.

    Attributes:
        datasets: Names of all data sets, in the order in which they come first.
    """

    def __init__(self, stimuli: Iterable[Stimulus] = ()) -> None:
        self._identifiers = bytearray()
        self._ends = array("Q", [0])
        self.datasets: list[str] = []
        self._numbers: dict[str, int] = {}
        self._places = array("Q")
        self._digests = array("q")
        for stimulus in stimuli:
            self.append(stimulus)

    def append(self, stimulus: Stimulus) -> None:
        """Add a stimulus at the end."""
        self._identifiers += stimulus.image_identifier.encode()
        self._ends.append(len(self._identifiers))
        if stimulus.dataset_name not in self._numbers:
            self._numbers[stimulus.dataset_name] = len(self.datasets)
            self.datasets.append(stimulus.dataset_name)
        self._places.append(self._numbers[stimulus.dataset_name])
        self._digests.append(hash(canonical_stimulus(stimulus.dataset_name, stimulus.image_identifier)))

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Give the names of data set and picture of each stimulus, in order."""
        for place, (start, end) in zip(self._places, pairwise(self._ends), strict=True):
            yield self.datasets[place], self._identifiers[start:end].decode()

    def repeated(self) -> Iterator[tuple[int, int]]:
        """Give the place of each stimulus that came before, perhaps in another spelling, and where it came first."""
        # Sorted numbers take a quarter of the memory of a set of names, and nearly all catalogs repeat none.
        twice = {one for one, next_one in pairwise(sorted(self._digests)) if one == next_one}
        first: dict[tuple[str, str], int] = {}
        for place, pair in enumerate(self.pairs()) if twice else ():
            if self._digests[place] in twice:
                earlier = first.setdefault(canonical_stimulus(*pair), place)
                if earlier != place:
                    yield place, earlier

    def __len__(self) -> int:
        """Count the stimuli."""
        return len(self._places)

    def __iter__(self) -> Iterator[Stimulus]:
        """Give the stimuli in order."""
        for dataset, identifier in self.pairs():
            yield Stimulus(dataset_name=dataset, image_identifier=identifier)

    @overload
    def __getitem__(self, place: int) -> Stimulus: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Stimulus, ...]: ...
    def __getitem__(self, place: int | slice) -> Stimulus | tuple[Stimulus, ...]:
        """Give one stimulus, or several of them."""
        if isinstance(place, slice):
            return tuple(self[i] for i in range(*place.indices(len(self))))
        i = range(len(self))[place]
        identifier = self._identifiers[self._ends[i] : self._ends[i + 1]].decode()
        return Stimulus(dataset_name=self.datasets[self._places[i]], image_identifier=identifier)
