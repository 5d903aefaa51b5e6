"""The answer of every function that makes models, if the data admit none."""

from __future__ import annotations

from typing import NamedTuple


class NoModel(NamedTuple):
    """There is no model; `reason` says why, as a clause for a message, e.g. `all x are equal`."""

    reason: str
