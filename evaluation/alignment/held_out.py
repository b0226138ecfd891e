"""Stimuli or models that a search does not see, which show whether its result holds for others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.evaluation.alignment.scoring import Embeddings
from headstart.output.errors import UserError

# A similarity needs at least 2 stimuli, and a mean over pairs 2 models.
LEAST = 2


@dataclass(frozen=True)
class HeldOut:
    """A division of stimuli, or of models, into those that a search sees and those that it does not.

    Attributes:
        option: The value of the option: a share, or names.
        items: What is divided: `stimuli` or `models`.
        seen: Indices of those that the search sees, ascending.
        unseen: Indices of the others, ascending.
    """

    option: float | list[str]
    items: str
    seen: NDArray[np.intp]
    unseen: NDArray[np.intp]

    def divide(self, embeddings: Embeddings) -> tuple[Embeddings, Embeddings]:
        """Return the seen and the unseen part of embeddings."""
        parts = (self.seen, self.unseen)
        if self.items == "stimuli":
            seen, unseen = ({name: each[part] for name, each in embeddings.items()} for part in parts)
        else:
            names = list(embeddings)
            seen, unseen = ({names[i]: embeddings[names[i]] for i in part} for part in parts)
        return seen, unseen

    def describe(self, score_seen: float, score_unseen: float) -> dict[str, Any]:
        """Return the division and both scores as JSON values."""
        return {
            "asked": self.option,
            "of": self.items,
            "n_seen": len(self.seen),
            "n_held_out": len(self.unseen),
            "score_seen": score_seen,
            "score_held_out": score_unseen,
        }


def hold_out(option: float | list[str], team: str, names: Sequence[str], seed: int) -> HeldOut | None:
    """Divide stimuli or models into a part that a search sees and a part that it does not.

    Args:
        option: Share that is held out, sampled at random; or names of what is held out; 0 for nothing.
        team: The Blue Team's stimuli are divided, the Red Team's models.
        names: The data set of each stimulus, or the name of each model.
        seed: Seed of the random share.

    Raises:
        UserError: The share is not between 0 and 1, a name is unknown, or fewer than two would be left on a side.
    """
    if not option:
        return None
    items, kind = ("stimuli", "data sets") if team == "blue" else ("models", "models")

    if isinstance(option, list):
        if unknown := sorted(set(option) - set(names)):
            choices = ", ".join(sorted(set(names)))
            raise UserError(
                f"held_out: there are no {kind} {', '.join(unknown)}; choose among {choices}, or give a share"
            )
        unseen = np.flatnonzero(np.isin(names, option))
    elif not 0 <= option < 1:
        raise UserError(f"held_out: {option} is no share; give a number from 0 to below 1, or names of {kind}")
    else:
        order = np.random.default_rng([seed, len(names)]).permutation(len(names))
        unseen = np.sort(order[: round(option * len(names))])

    seen = np.setdiff1d(np.arange(len(names)), unseen)
    if min(len(seen), len(unseen)) < LEAST:
        raise UserError(
            f"held_out: {option} leaves {len(seen)} {items} to choose by and {len(unseen)} held out; "
            f"each takes {LEAST} or more"
        )
    return HeldOut(option, items, seen, unseen)
