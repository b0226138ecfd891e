"""What a search does not see: stimuli, or models, that tell whether it found something that holds for others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.output.errors import UserError

# A similarity needs as many stimuli, and compares as many models.
LEAST = 2


@dataclass(frozen=True)
class HeldOut:
    """A division of stimuli, or of models, into those that a search sees and those that it does not.

    Attributes:
        asked: What was asked for: a share, or names.
        things: What is divided: `stimuli` or `models`.
        seen: Indices of those that the search sees, ascending.
        unseen: Indices of the others, ascending.
    """

    asked: float | list[str]
    things: str
    seen: NDArray[np.intp]
    unseen: NDArray[np.intp]

    def describe(self, score_seen: float, score_unseen: float) -> dict[str, Any]:
        """Give what a result says of the division and of both scores, as JSON values."""
        return {
            "asked": self.asked,
            "of": self.things,
            "n_seen": len(self.seen),
            "n_held_out": len(self.unseen),
            "score_seen": score_seen,
            "score_held_out": score_unseen,
        }


def hold_out(asked: float | list[str], team: str, names: Sequence[str], seed: int) -> HeldOut | None:
    """Divide what a search is to see from what it is not.

    Args:
        asked: Share that is held out, drawn at random; or names of what is held out; 0 for nothing.
        team: The Blue Team's stimuli are divided, the Red Team's models.
        names: The data set of each stimulus, or the name of each model.
        seed: Seed of the draw.

    Raises:
        UserError: The share is not between 0 and 1, a name is not there, or fewer than two would be left on a side.
    """
    things, kind = ("stimuli", "data sets") if team == "blue" else ("models", "models")
    if isinstance(asked, list):
        if unknown := sorted(set(asked) - set(names)):
            there = ", ".join(sorted(set(names)))
            raise UserError(
                f"held_out: there are no {kind} {', '.join(unknown)}; choose among {there}, or give a share"
            )
        unseen = np.flatnonzero(np.isin(names, asked))
    elif not 0 <= asked < 1:
        raise UserError(f"held_out: {asked} is no share; give a number from 0 to below 1, or names of {kind}")
    else:
        order = np.random.default_rng([seed, len(names)]).permutation(len(names))
        unseen = np.sort(order[: round(asked * len(names))])
    if not asked:
        return None
    seen = np.setdiff1d(np.arange(len(names)), unseen)
    if min(len(seen), len(unseen)) < LEAST:
        raise UserError(
            f"held_out: {asked} leaves {len(seen)} {things} to choose by and {len(unseen)} held out; "
            f"each takes {LEAST} or more"
        )
    return HeldOut(asked, things, seen, unseen)
