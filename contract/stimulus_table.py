"""Millions of stimuli: their names in one piece of memory, from which a stimulus is built on access."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from headstart.contract.names import canonical_stimulus
from headstart.contract.schema import Stimulus


class StimulusTable(Sequence[Stimulus]):
    """A list of stimuli that needs little more memory than the bytes of their names.

    Args:
        stimuli: Its first stimuli.

    Attributes:
        datasets: Names of all data sets, in the order of their first stimuli.
    """

    def __init__(self, stimuli: Iterable[Stimulus] = ()) -> None:
        self._identifiers = bytearray()
        self._ends = array("Q", [0])
        self.datasets: list[str] = []
        self._indices: dict[str, int] = {}
        self._dataset_indices = array("Q")
        self._digests = array("q")
        for stimulus in stimuli:
            self.append(stimulus)

    def append(self, stimulus: Stimulus) -> None:
        """Add a stimulus at the end."""
        self._identifiers += stimulus.image_identifier.encode()
        self._ends.append(len(self._identifiers))
        if stimulus.dataset_name not in self._indices:
            self._indices[stimulus.dataset_name] = len(self.datasets)
            self.datasets.append(stimulus.dataset_name)
        self._dataset_indices.append(self._indices[stimulus.dataset_name])
        self._digests.append(hash(canonical_stimulus(stimulus.dataset_name, stimulus.image_identifier)))

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield the names of data set and picture of each stimulus, in order."""
        for index, (start, end) in zip(self._dataset_indices, pairwise(self._ends), strict=True):
            yield self.datasets[index], self._identifiers[start:end].decode()

    def repeated(self) -> Iterator[tuple[int, int]]:
        """Yield the index of each stimulus that repeats an earlier one, also in another spelling, and the first's."""
        # Sorted digests need a quarter of the memory of a set of names, and most catalogs repeat none.
        repeated = {one for one, following in pairwise(sorted(self._digests)) if one == following}
        first: dict[tuple[str, str], int] = {}
        for index, pair in enumerate(self.pairs()) if repeated else ():
            if self._digests[index] in repeated:
                earlier = first.setdefault(canonical_stimulus(*pair), index)
                if earlier != index:
                    yield index, earlier

    def __len__(self) -> int:
        """Return the number of stimuli."""
        return len(self._dataset_indices)

    def __iter__(self) -> Iterator[Stimulus]:
        """Yield the stimuli in order."""
        for dataset, identifier in self.pairs():
            yield Stimulus(dataset_name=dataset, image_identifier=identifier)

    def __getitem__(self, index: int) -> Stimulus:  # type: ignore[override] # no slices
        """Return one stimulus."""
        i = range(len(self))[index]
        identifier = self._identifiers[self._ends[i] : self._ends[i + 1]].decode()
        return Stimulus(dataset_name=self.datasets[self._dataset_indices[i]], image_identifier=identifier)
