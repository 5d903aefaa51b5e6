"""The repositories that the benchmarks run in, made from nothing."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

from perun.profile.factory import Profile
from perun.profile.head import ProfileHeader
from perun.store import Store
from perun.store.index import IndexEntry
from perun.store.pending import link

START = 1_600_000_000


def history(folder: Path, commits: int) -> None:
    """A git repository of so many empty commits in one line."""
    folder.mkdir(parents=True)
    _git(folder, "init", "-q", "-b", "main")
    stream = "".join(_commit(number) for number in range(commits))
    subprocess.run(["git", "fast-import", "--quiet"], cwd=folder, input=stream.encode(), check=True)


def _commit(number: int) -> str:
    message = f"Change number {number} of the module\n\nA body that says a little more.\n"
    who = f"A Developer <developer@example.org> {START + 60 * number} +0000"
    return f"commit refs/heads/main\nmark :{number + 1}\ncommitter {who}\ndata {len(message)}\n{message}\n"


def checksums(folder: Path) -> list[str]:
    """All versions, newest first."""
    return _git(folder, "rev-list", "HEAD").split()


def time_profile(amount: float, workload: str = "100") -> Profile:
    """A profile as the time collector makes it, of ten runs."""
    resources = [
        {"amount": amount * share, "type": "time", "subtype": kind, "uid": "./mybin", "order": order}
        for order in range(1, 11)
        for kind, share in (("real", 1.0), ("user", 0.9), ("sys", 0.1))
    ]
    profile = Profile(
        {
            "header": {
                "type": "time",
                "cmd": "./mybin",
                "args": "",
                "workload": workload,
                "units": {"time": "s"},
            },
            "collector_info": {"name": "time", "params": {"warmup": 3, "repeat": 10}},
            "postprocessors": [],
        }
    )
    profile.update_resources(resources)
    return profile


def register(folder: Path, profiles: int, every: int) -> None:
    """One profile in every so-manieth version, newest first."""
    store = Store(folder / ".perun")
    for number, checksum in enumerate(checksums(folder)[::every][:profiles]):
        link(store, checksum, [(time_profile(0.1 + number * 1e-6), f"time-{number}.perf", START + number)])


def many(folder: Path, versions: int, configurations: int, at_head: int = 0) -> None:
    """One profile in each of so many versions, spread over all history; the configurations take turns.

    Not by `link`, which makes sure after each profile that it is on the disk.

    :param at_head: so many more profiles of HEAD, each of a configuration that no other version has.
    """
    store = Store(folder / ".perun")
    every = checksums(folder)
    for number, checksum in enumerate(every[:: len(every) // versions][:versions]):
        found = [time_profile(0.1 + number * 1e-6, str(number % configurations))]
        if not number:
            found += [time_profile(0.2, f"only-{one}") for one in range(at_head)]
        entries = []
        for position, profile in enumerate(found):
            head = ProfileHeader.of(profile)
            name = f"time-{number}-{position}.perf"
            entries.append(IndexEntry(START + number, store.objects.put(profile), name, head))
        store.indexes.add(checksum, entries)
    store.summaries.rebuild()


def pending(folder: Path, count: int) -> Iterator[tuple[Path, bytes]]:
    """So many pending profiles of HEAD, as path and content."""
    from perun.profile.format.json import dumps_pending

    head = checksums(folder)[0]
    for number in range(count):
        profile = time_profile(0.1 + number * 1e-6, str(number))
        profile["origin"] = head
        yield folder / ".perun" / "jobs" / f"time-{number}.perf", dumps_pending(profile)


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout
