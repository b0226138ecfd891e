"""The files of a search, written while it runs and at its end, and what it prints."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from headstart.contract.schema import CONTRACT_VERSION, Team
from headstart.contract.submissions import KEYS
from headstart.metrics.similarity.stimulus_subset_search import SearchState
from headstart.output.errors import UserError
from headstart.output.files import write_texts
from headstart.output.printable import say

SEARCH, SUBMISSION = "search.json", "submission.json"
# Seconds between two times that the best so far is written.
INTERVAL = 10.0
# A smaller standard deviation of random submissions is a rounding error.
ROUNDING = 1e-9


@dataclass
class SearchFiles:
    """search.json and submission.json of one search.

    Attributes:
        folder: Their folder.
        team: The team that the submission is for.
        entries: The models or stimuli to choose from, as a submission lists them.
        header: The options of the search, as JSON values.
        footer: Further values that the result depends on.
    """

    folder: Path
    team: Team
    entries: Sequence[Any]
    header: Mapping[str, Any]
    footer: Mapping[str, Any]
    _written: float = field(default=-INTERVAL, init=False)

    def write(self, chosen: Sequence[int], result: Mapping[str, Any]) -> tuple[dict[str, Any], list[Path]]:
        """Write both files, each complete or as it was.

        Args:
            chosen: Indices of the entries of the submission.
            result: The result, as JSON values.

        Returns:
            The content of search.json, and the files.
        """
        document = {"contract_version": CONTRACT_VERSION, **self.header, **result, **self.footer}
        submission = {"contract_version": CONTRACT_VERSION, KEYS[self.team]: [self.entries[i] for i in chosen]}
        texts = {SUBMISSION: json.dumps(submission, indent=1) + "\n", SEARCH: json.dumps(document, indent=1) + "\n"}
        return document, write_texts(self.folder, texts)

    def keep(self, state: SearchState) -> None:
        """Write the best so far from time to time, so that the search can be ended early or resumed."""
        now = time.monotonic()
        if now - self._written >= INTERVAL:
            result = {"finished": False, "score": 1 - state.value, "exact": False}
            self.write(state.best, {**result, **state_fields(state)})
            self._written = now

    def read_state(self) -> SearchState | None:
        """Return the state of an earlier search, None where there is none.

        Raises:
            UserError: The file was changed since it was written.
        """
        path = self.folder / SEARCH
        try:
            stored = json.loads(path.read_text()).get("state")
            if stored is None:
                return None
            state = SearchState(**{**stored, "best": tuple(stored["best"]), "members": tuple(stored["members"])})
            size, indices = self.header["size"], set(range(len(self.entries)))
            if any(len(each) != size or len(set(each) & indices) != size for each in (state.best, state.members)):
                raise ValueError(path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise UserError(
                f"output: {str(path)!r} does not hold the state of a search; start again with --overwrite=true"
            ) from error
        return state


def state_fields(state: SearchState) -> dict[str, Any]:
    """Return the state of a search as search.json holds it."""
    return {"state": {each.name: getattr(state, each.name) for each in fields(state)}}


def print_search(document: Mapping[str, Any], pool: int, title: str) -> None:
    """Print the result, its score on what was held out, and how far it lies above random submissions.

    Args:
        document: The content of search.json.
        pool: Number of models or stimuli to choose from.
        title: Title of the measure, or nothing for the contract's.
    """
    best, random = document["score"], document["random"]
    team, by = document["team"].title(), f" by {title}" if title else ""
    exact = "the best possible" if document["exact"] else "the best found"
    gap = document.get("gap", 0)
    bound = f"; no submission scores above {document['bound']:.6f}, {gap:.6f} more" if gap else ""
    chosen = f"{document['size']} of {pool}, {exact}"

    if "held_out" in document:
        held = document["held_out"]
        seen, unseen, items = held["n_seen"], held["n_held_out"], held["of"]
        say(
            f"{team} Team score {held['score_seen']:.6f}{by} with {chosen} on the {seen} {items} that the search saw"
            f"{bound}"
        )
        say(f"It scores {held['score_held_out']:.6f} on the {unseen} held-out {items}, and {best:.6f} on all")
    else:
        same = "on the same stimuli" if team == "Blue" else "by the same models"
        say(f"{team} Team score {best:.6f}{by} with {chosen}{bound}")
        say(f"Searched and scored {same}; add --held_out=0.5 to also score on held-out ones")

    # Adding 0 turns a negative 0, left by rounding, into a positive one.
    above, spread = round(best - random["mean"], 6) + 0.0, random["standard_deviation"]
    deviations = f" ({above / spread:.1f} standard deviations)" if spread > ROUNDING else ""
    say(
        f"{random['draws']} random submissions: mean {random['mean']:.6f}, standard deviation {spread:.6f}, "
        f"highest {random['highest']:.6f}; this one is {above:.6f} above their mean{deviations}"
    )
