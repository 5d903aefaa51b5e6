"""Slots of a recording as numpy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from perun.island import layout

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Table = NDArray[np.void]

SLOT: Final = [
    *(("start", "u8"), ("end", "u8"), ("amount", "i8"), ("api", "u2"), ("flags", "u2"), ("object", "u4"))
]
"""As `layout.SLOT`, for numpy."""
TEXTS: Final = (layout.NOTE_OBJECT, layout.NOTE_THREAD, layout.NOTE_ISLAND)
"""Notes behind which slots of text follow."""


def is_text(slots: Table) -> NDArray[np.bool_]:
    """Which slots hold text that belongs to the note before it."""
    import numpy as np

    text = np.zeros(len(slots), np.bool_)
    end = 0
    for place in np.flatnonzero(np.isin(slots["api"], TEXTS)).tolist():
        if place >= end:
            end = place + 1 - (-max(int(slots["amount"][place]), 0) // layout.SLOT.size)
            text[place + 1 : end] = True
    return text
