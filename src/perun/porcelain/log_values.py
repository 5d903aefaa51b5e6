"""What was measured in each version of a history, beside the same of the nearest ancestor, as a stream."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

from perun.porcelain.earlier import Earlier, Wanted
from perun.profile.head import Configuration
from perun.profile.measured import Measured

LOOK_AHEAD: Final = 500
"""Versions that are looked at for earlier values before a version is given without them."""

_T = TypeVar("_T")


class LogValue(NamedTuple):
    """The value of one configuration in a version; `earlier` is None where no near ancestor has it."""

    configuration: Configuration
    measured: Measured
    earlier: Earlier | None


class _Held(Generic[_T]):
    """An item of the stream: what of its values is still looked for, and what was found."""

    __slots__ = ("found", "item", "missing", "number", "values")

    def __init__(self, item: _T, values: Mapping[Wanted, Measured], number: int) -> None:
        self.item = item
        self.values = values
        self.number = number
        self.missing = set(values)
        self.found: dict[Wanted, Earlier] = {}

    def result(self) -> tuple[LogValue, ...]:
        if not self.values:
            return ()
        return tuple(
            LogValue(wanted.configuration, value, self.found.get(wanted))
            for wanted, value in self.values.items()
        )


class WithValues(Generic[_T]):
    """Joins each version of a walk with its values and those of its nearest ancestors.

    The walk gives children before their parents, as far as the clocks of their authors agree. A version is
    held back until what is looked for is found, or :data:`LOOK_AHEAD` more versions were seen.

    :param version_of: the checksum and the parents of an item of the walk.
    :param values_of: the values of an item; they are asked for once.
    """

    def __init__(
        self,
        version_of: Callable[[_T], tuple[str, tuple[str, ...]]],
        values_of: Callable[[_T], Mapping[Wanted, Measured]],
        look_ahead: int = LOOK_AHEAD,
    ) -> None:
        self._version_of = version_of
        self._values_of = values_of
        self._look_ahead = look_ahead
        # By the checksum of a version that is to come: the versions it is an ancestor of that miss something.
        self._awaited: dict[str, list[_Held[_T]]] = {}

    def join(self, items: Iterable[_T]) -> Iterator[tuple[_T, tuple[LogValue, ...]]]:
        """The items in their order, each with its values."""
        held: deque[_Held[_T]] = deque()
        for number, item in enumerate(items):
            values = self._values_of(item)
            if not (held or values):
                yield item, ()
                continue
            one = _Held(item, values, number)
            held.append(one)
            self._look(one, *self._version_of(item))
            while held and (not held[0].missing or number - held[0].number >= self._look_ahead):
                done = held.popleft()
                done.missing.clear()  # whoever still looks for it stops
                yield done.item, done.result()
            if not held:
                self._awaited.clear()
        for one in held:
            yield one.item, one.result()

    def _look(self, one: _Held[_T], checksum: str, parents: tuple[str, ...]) -> None:
        """Give the values of a version to those it is an ancestor of, and go on with its parents."""
        looking = [other for other in self._awaited.pop(checksum, ()) if other.missing]
        if one.values:
            for other in looking:
                for wanted in other.missing & one.values.keys():
                    other.found[wanted] = Earlier(one.values[wanted], checksum)
                other.missing -= one.values.keys()
            looking = [other for other in looking if other.missing]
            looking.append(one)
        if not looking:
            return
        for parent in parents:
            known = self._awaited.get(parent)
            if known is None:
                self._awaited[parent] = looking[:] if len(parents) > 1 else looking
            else:
                known += [other for other in looking if other not in known]
