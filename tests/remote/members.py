"""Members of a team who have profiles: as much of a `Repository` as sharing needs."""

from pathlib import Path
from types import SimpleNamespace

from perun.profile.head import ProfileHeader
from perun.sharing.known import registered_here
from perun.store import Store
from perun.store.index import IndexEntry
from perun.store.remote.register import RegisterEntry

BODY = (
    b'{"header":{"type":"time","units":{"time":"s"},"cmd":"%d","args":"%s","workload":""},'
    b'"collector_info":{"name":"time","params":{}},"postprocessors":[],"resources":{}}'
)
MINORS = [letter * 40 for letter in "abcde"]


def member(folder: Path) -> SimpleNamespace:
    """One who has no profiles, with a `.perun` in the folder."""
    store = Store(folder / ".perun")
    store.create()
    return SimpleNamespace(store=store, folder=folder)


def measure(who: SimpleNamespace, number: int, arguments: bytes = b"") -> None:
    """Register the profile of this number, in one of five versions."""
    checksum = who.store.objects.put_body("time", BODY % (number, arguments))
    head = ProfileHeader("time", str(number), arguments.decode(), "", "", ())
    entry = IndexEntry(100 + number, checksum, f"{number}.perf", head)
    who.store.indexes.add(MINORS[number % len(MINORS)], [entry])


def here(*members: SimpleNamespace) -> set[RegisterEntry]:
    """What is registered by one of them, or several."""
    return {entry for one in members for entry in registered_here(one, None)}
