"""The profiles of a remote: the union of all its registers, whatever their order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from operator import itemgetter

from perun.remote.pack import Place
from perun.remote.register import Added, Entry, Register

Tag = tuple[str, int]
"""That a register registers a profile: its name, and the time of the file (ns) that it says."""

_file_time = itemgetter(1)


class Union:
    """What a set of registers says together. Applying one twice, or in another order, changes nothing.

    A profile is registered where a register says so that no removal names, and its object is in a pack that
    is not dead. Of dead packs (:mod:`perun.remote.state`) nothing counts, whatever still names them.
    """

    def __init__(self) -> None:
        self.registers: set[str] = set()
        self.dead: set[str] = set()
        self._added: dict[Entry, tuple[Tag, ...]] = {}
        self._removed: dict[Entry, set[str]] = {}
        self._places: dict[str, tuple[Place, ...]] = {}

    def apply(self, name: str, register: Register) -> None:
        """Take in the register of this name."""
        if name in self.registers:
            return
        self.registers.add(name)
        for entry, file_time, place in register.added:
            self.add(entry, (name, file_time))
            self.place(entry.checksum, place)
        for gone in register.removed:
            self.remove(gone.entry, gone.registers)
        for moved in register.moved:
            self.place(moved.checksum, moved.place)

    def add(self, entry: Entry, tag: Tag) -> None:
        """Take in that a register registers the profile."""
        known = self._added.setdefault(entry, (tag,))
        if tag not in known:
            self._added[entry] = (*known, tag)

    def place(self, checksum: str, place: Place) -> None:
        """Take in where an object is; it may be in several packs."""
        known = self._places.setdefault(checksum, (place,))
        if place not in known:
            self._places[checksum] = (*known, place)

    def remove(self, entry: Entry, registers: Iterable[str]) -> None:
        """Take in that the profile is removed, as far as these have registered it."""
        self._removed.setdefault(entry, set()).update(registers)

    def __iter__(self) -> Iterator[Added]:
        """The profiles that are registered, each with the earliest time of its file and its first place."""
        for entry in self._added:
            if (tags := self._tags(entry)) and (place := self.where(entry.checksum)):
                yield Added(entry, min(map(_file_time, tags)), place)

    def __contains__(self, entry: Entry) -> bool:
        return bool(self._tags(entry)) and self.where(entry.checksum) is not None

    def lacking(self, entries: Iterable[Entry]) -> list[Entry]:
        """Those of the profiles that are not registered."""
        added, removed = self._added, self._removed
        if self.dead:
            return [entry for entry in entries if entry not in self]
        return [one for one in entries if one not in added or (one in removed and one not in self)]

    def _tags(self, entry: Entry) -> tuple[Tag, ...]:
        tags = self._added.get(entry, ())
        if gone := self._removed.get(entry):
            return tuple(tag for tag in tags if tag[0] not in gone)
        return tags

    def saying(self, entry: Entry) -> tuple[str, ...]:
        """The registers by which the profile is registered, ordered by name: a removal names these."""
        return tuple(sorted(tag[0] for tag in self._tags(entry)))

    def was_removed(self, entry: Entry) -> bool:
        """Whether the profile was removed, and not registered again since."""
        return entry in self._removed and not self._tags(entry)

    def where(self, checksum: str) -> Place | None:
        """Where the object is; None where no pack has it that is not dead."""
        places = self._places.get(checksum, ())
        if len(places) == 1 and places[0].pack not in self.dead:
            return places[0]
        return min((place for place in places if place.pack not in self.dead), default=None)

    def needed(self, avoid: Collection[str] = ()) -> dict[str, dict[str, Place]]:
        """What the registered profiles need: of each pack its objects by checksum.

        Each object is asked of one pack only: of one that is to be avoided only where no other has it.
        """
        found: dict[str, dict[str, Place]] = {}
        for checksum, places in self._living().items():
            best = min(places, key=lambda one: (one.pack in avoid, one))
            found.setdefault(best.pack, {})[checksum] = best
        return found

    def sizes(self) -> dict[str, int]:
        """Of each pack, the bytes of the objects in it that registered profiles have, there or elsewhere."""
        sizes: dict[str, int] = {}
        for places in self._living().values():
            for pack, _start, size in places:
                sizes[pack] = sizes.get(pack, 0) + size
        return sizes

    def _living(self) -> dict[str, list[Place]]:
        """The objects of registered profiles, each with its places."""
        found: dict[str, list[Place]] = {}
        for entry in self._added:
            if entry.checksum not in found and self._tags(entry):
                places = [one for one in self._places.get(entry.checksum, ()) if one.pack not in self.dead]
                if places:
                    found[entry.checksum] = places
        return found

    def rows(self) -> Iterator[tuple[Entry, tuple[Tag, ...]]]:
        """The profiles that are registered somewhere and not removed, also where no pack has their object."""
        for entry in self._added:
            if tags := self._tags(entry):
                yield entry, tags

    def removals(self) -> Iterator[tuple[Entry, tuple[str, ...]]]:
        """What was ever removed, and the registers that each removal named, ordered by name."""
        for entry, registers in self._removed.items():
            yield entry, tuple(sorted(registers))

    def places(self) -> Iterator[tuple[str, Place]]:
        """The objects of registered profiles, each with every place that is not dead."""
        for checksum, places in self._living().items():
            yield from ((checksum, place) for place in places)
