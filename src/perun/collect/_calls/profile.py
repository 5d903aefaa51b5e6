"""The profile of calls (manual 4.1.1): groups by function, caller and thread, in packed columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.collect._calls.events import Calls

if TYPE_CHECKING:
    from perun.plugin.api import Run
    from perun.profile.factory import Profile

COLLECTOR_TYPE: Final = "mixed"
COLLECTOR_DEFAULT_UNITS: Final = {"mixed(time delta)": "us"}


class Function(NamedTuple):
    """What the number of a function stands for.

    :param name: the uid, e.g. `SLList_insert(SLList*, int)`. :param location: path of its binary.
    :param sizes: the expression that its sizes are values of, e.g. `list->size`; empty where it has none.
    """

    name: str
    location: str = ""
    sizes: str = ""


class CallTable:
    """Calls put together for a profile; 48 bytes are kept of each.

    :ivar total: number of calls so far.
    """

    def __init__(self) -> None:
        self.total = 0
        raise NotImplementedError

    def add(self, calls: Calls) -> None:
        """Take in more calls, of any threads, in any order."""
        raise NotImplementedError

    def profile(
        self,
        functions: Sequence[Function] | Mapping[int, Function],
        run: Run,
        collector: Mapping[str, Any],
        summary: Mapping[str, Any],
    ) -> Profile:
        """The profile of all calls; the table is empty afterwards.

        :param functions: what the numbers of functions stand for.
        :param collector: the region `collector_info`, with `name` and `params`.
        :param summary: what is known of the whole run: the region `trace` of the profile.
        """
        raise NotImplementedError
