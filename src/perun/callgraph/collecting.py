"""Leaving out the search for cycles of objects while many are made that have none."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_search_for_cycles() -> Iterator[None]:
    """Within it Python frees objects by their counts of references only.

    Otherwise it looks through all objects of a call graph again and again while more are made.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.freeze()  # what was made is old then, so that the next search does not begin with all of it
            gc.unfreeze()
            gc.enable()
