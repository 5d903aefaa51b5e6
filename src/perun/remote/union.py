"""The profiles of a remote: the union of all its registers, whatever their order."""

from __future__ import annotations

from collections.abc import Iterator

from perun.remote.pack import Place
from perun.remote.register import Added, Entry, Register


class Union:
    """What a set of registers says together. Applying one twice, or in another order, changes nothing."""

    def __init__(self) -> None:
        self.registers: set[str] = set()
        self._added: dict[Entry, dict[str, Added]] = {}
        self._removed: dict[Entry, set[str]] = {}

    def apply(self, name: str, register: Register) -> None:
        """Take in the register of this name."""
        if name in self.registers:
            return
        self.registers.add(name)
        for one in register.added:
            self._added.setdefault(one.entry, {})[name] = one
        for gone in register.removed:
            self._removed.setdefault(gone.entry, set()).update(gone.registers)

    def __iter__(self) -> Iterator[Added]:
        """The profiles that are registered, each as the first of its registers, by name, says."""
        for entry, saying in self._added.items():
            if left := saying.keys() - self._removed.get(entry, ()):
                yield saying[min(left)]

    def __contains__(self, entry: Entry) -> bool:
        return bool(self.saying(entry))

    def saying(self, entry: Entry) -> tuple[str, ...]:
        """The registers by which the profile is registered, ordered by name: a removal names these."""
        return tuple(sorted(self._added.get(entry, {}).keys() - self._removed.get(entry, ())))

    def was_removed(self, entry: Entry) -> bool:
        """Whether the profile was removed, and not registered again since."""
        return entry in self._removed and entry not in self

    def places(self) -> dict[str, Place]:
        """Where the objects are that something registers, by checksum."""
        return {one.entry.checksum: one.place for one in self}
