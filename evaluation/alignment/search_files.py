"""What a search writes, while it goes on and at its end, and what it prints."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from headstart.contract.schema import CONTRACT_VERSION
from headstart.evaluation.alignment.held_out import HeldOut
from headstart.metrics.similarity.stimulus_subset_sweeps import SweepState
from headstart.output.errors import UserError
from headstart.output.files import write_texts
from headstart.output.printable import say

SEARCH, SUBMISSION = "search.json", "submission.json"
# Seconds between two times that the best so far is written.
INTERVAL = 10.0
# A spread of random submissions below is a rounding error.
ROUNDING = 1e-9


@dataclass
class SearchFiles:
    """search.json and submission.json of one search.

    Attributes:
        folder: Where they are.
        key: What the submission's list is called.
        entries: What the submission has for each thing that can be chosen.
        header: What was asked for, as JSON values.
        footer: What the result depends on besides.
    """

    folder: Path
    key: str
    entries: Sequence[Any]
    header: Mapping[str, Any]
    footer: Mapping[str, Any]
    _written: float = field(default=-INTERVAL, init=False)

    def write(self, chosen: Sequence[int], found: Mapping[str, Any]) -> tuple[dict[str, Any], list[Path]]:
        """Write both, each complete or as it was.

        Args:
            chosen: Indices of what the submission has.
            found: What was found, as JSON values.

        Returns:
            What search.json holds, and the files.
        """
        document = {"contract_version": CONTRACT_VERSION, **self.header, **found, **self.footer}
        submission = {"contract_version": CONTRACT_VERSION, self.key: [self.entries[i] for i in chosen]}
        texts = {SUBMISSION: json.dumps(submission, indent=1) + "\n", SEARCH: json.dumps(document, indent=1) + "\n"}
        return document, write_texts(self.folder, texts)

    def keep(self, state: SweepState) -> None:
        """Write the best so far, now and then, for whoever ends the search or wants to go on."""
        now = time.monotonic()
        if now - self._written >= INTERVAL:
            self.write(state.best, {"finished": False, "score": 1 - state.value, "exact": False, **state_of(state)})
            self._written = now

    def left(self) -> SweepState | None:
        """Give where a search before left off, None where there was none or nothing to go on from.

        Raises:
            UserError: The file is no longer as it was written.
        """
        path = self.folder / SEARCH
        try:
            found = json.loads(path.read_text()).get("state")
            if found is None:
                return None
            state = SweepState(**{**found, "best": tuple(found["best"]), "members": tuple(found["members"])})
            size, there = self.header["size"], set(range(len(self.entries)))
            if any(len(each) != size or len(set(each) & there) != size for each in (state.best, state.members)):
                raise ValueError(path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise UserError(
                f"output: {str(path)!r} tells no longer where the search left off; begin anew with --overwrite=true"
            ) from error
        return state


def state_of(state: SweepState) -> dict[str, Any]:
    """Give what search.json says of where a search is."""
    return {"state": {each.name: getattr(state, each.name) for each in fields(state)}}


def print_search(document: Mapping[str, Any], pool: int, divided: HeldOut | None, title: str) -> None:
    """Print what was found, what it scores on what was held out, and how far it lies above random submissions.

    Args:
        document: The content of search.json.
        pool: How many things there are to choose from.
        divided: What was held out.
        title: What the measure is called, or nothing for the contract's.
    """
    best, random = document["score"], document["random"]
    team, by = document["team"].title(), f" by {title}" if title else ""
    exact = "the best there is" if document["exact"] else "the best that was found"
    bound = (
        ""
        if document.get("gap", 0) == 0
        else f"; none scores above {document['bound']:.6f}, {document['gap']:.6f} more"
    )
    if divided is None:
        same = "on the same stimuli" if team == "Blue" else "by the same models"
        say(f"{team} Team score {best:.6f}{by} with {document['size']} of {pool}, {exact}{bound}")
        say(f"Searched and scored {same}; --held_out=0.5 tells what it is worth elsewhere")
    else:
        seen, unseen, things = len(divided.seen), len(divided.unseen), divided.things
        held = document["held_out"]
        say(
            f"{team} Team score {held['score_seen']:.6f}{by} with {document['size']} of {pool}, {exact} on the {seen} "
            f"{things} that the search saw{bound}"
        )
        say(f"On the {unseen} {things} that were held out it scores {held['score_held_out']:.6f}, on all {best:.6f}")
    # Adding 0 makes a negative 0, of what differs by rounding, positive.
    above, spread = round(best - random["mean"], 6) + 0.0, random["standard_deviation"]
    deviations = f" ({above / spread:.1f} standard deviations)" if spread > ROUNDING else ""
    say(
        f"{random['draws']} random submissions: mean {random['mean']:.6f}, standard deviation {spread:.6f}, "
        f"highest {random['highest']:.6f}; this one lies {above:.6f} above their mean{deviations}"
    )
