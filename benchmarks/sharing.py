"""Sharing profiles: what is new among very many, a first pull beside copying, and `dvc` on the same files."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from harness import Contestant, Timing, once
from perun.repository.init import init
from perun.repository.repository import open_repository
from perun.sharing import transfer
from perun.sharing.remotes import add
from perun.store.remote.contract import MAX_PIECE, PieceInfo
from perun.store.remote.file import FileRemote
from report import Count, Measured, Place, Row
from sharing_history import commits, profiles

VERSIONS = 1000
EACH = 100
FIRST = 10_000
REQUESTS = 50
GOAL = 2.0
"""Seconds that a push or pull of ten new profiles among 100,000 may take."""
LISTED_AT_ONCE = 1000
"""Pieces that an object store lists by a request."""
DVC = Path("build/dvc/bin/dvc")


class Counting(FileRemote):
    """A folder that counts what would be a request to an object store."""

    requests = 0

    def put(self, key: str, data: bytes) -> bool:
        self.requests += 1
        return super().put(key, data)

    def get(self, key: str, limit: int = MAX_PIECE) -> bytes:
        self.requests += 1
        return super().get(key, limit)

    def get_range(self, key: str, start: int, length: int) -> bytes:
        self.requests += 1
        return super().get_range(key, start, length)

    def list(self, prefix: str) -> Iterator[PieceInfo]:
        found = list(super().list(prefix))
        self.requests += 1 + len(found) // LISTED_AT_ONCE
        return iter(found)

    def replace(self, key: str, data: bytes, expected: bytes | None) -> bool:
        self.requests += 1
        return super().replace(key, data, expected)


def few_among_many(place: Place) -> Iterator[Row | Count]:
    """Ten new profiles among 100,000 of 1,000 versions: what a push of them takes, and then a pull."""
    ours, other, versions = _two(place, "many", VERSIONS, EACH)
    here, there = open_repository(ours, os.environ), open_repository(other, os.environ)
    remote = Counting(place.folder / "many-remote")
    transfer.push(here, remote)
    transfer.pull(there, remote)
    requests: dict[str, list[int]] = {"push": [], "pull": []}
    for number in range(2):
        profiles(ours, versions[-1:], 10, seed=100 + number)
        for verb, repo in (("push", here), ("pull", there)):
            remote.requests = 0
            getattr(transfer, verb)(repo, remote)
            requests[verb].append(remote.requests)
    samples: dict[str, list[Timing]] = {"push": [], "pull": []}
    for number in range(place.rounds):
        profiles(ours, versions[-1:], 10, seed=number + 1)
        for verb, folder in (("push", ours), ("pull", other)):
            samples[verb].append(once(Contestant([place.perun, verb], folder)))
    for verb in ("push", "pull"):
        what = f"{verb} of 10 new profiles among {VERSIONS * EACH:,}"
        wall = Measured([one.wall for one in samples[verb]])
        yield Row(what, wall, GOAL, "the goal", 1.0, is_rival=False)
        cpu = Measured([one.cpu for one in samples[verb]])
        yield Row(f"{what}, CPU", cpu, GOAL, "the goal of wall time", None, is_rival=False)
        yield Count(f"requests of that {verb}", max(requests[verb]), REQUESTS, most=REQUESTS)


def first_pull(place: Place) -> Iterator[Row | Count]:
    """The first pull of 10,000 profiles beside copying their files, and beside dvc.

    Nothing is removed before all was measured: some file systems take very much longer for new files where
    many were removed within the last minutes.
    """
    ours, _other, _versions = _two(place, "first", FIRST // EACH, EACH)
    remote = FileRemote(place.folder / "first-remote")
    transfer.push(open_repository(ours, os.environ), remote)
    objects = ours / ".perun/objects"
    # All have to be on the disk in the end.
    plain = {
        "cp -r, sync": 'cp -r "$0" "$1" && sync -f "$1"',
        "tar, sync": 'mkdir "$1" && tar -c -C "$0" . | tar -x -C "$1" && sync -f "$1"',
    }
    copying: dict[str, list[Timing]] = {name: [] for name in plain}
    pulling = []
    for number in range(min(place.rounds, 5)):
        clone = place.folder / f"first-clone-{number}"
        _clone(ours, clone, remote.url)
        for name, command in plain.items():
            copied = place.folder / f"{name.split()[0]}-{number}"
            _flush(place.folder)
            timing = once(Contestant(["sh", "-c", command, str(objects), str(copied)], place.folder))
            copying[name].append(timing)
        _flush(place.folder)
        pulling.append(once(Contestant([place.perun, "pull"], clone)))
    what = f"first pull of {FIRST:,} profiles"
    pulled = Measured([timing.wall for timing in pulling])
    for name, timings in copying.items():
        limit = 2.0 if name.startswith("cp") else None
        yield Row(what, pulled, Measured([one.wall for one in timings]), name, limit, is_rival=False)
        cpu = Measured([one.cpu for one in pulling]), Measured([one.cpu for one in timings])
        yield Row(f"{what}, CPU", *cpu, name, None, is_rival=False)
    if DVC.exists():
        push, pull = _dvc(place, objects)
        yield Row(what, pulled, pull, "dvc pull", None)
        empty = f"file://{place.folder / 'first-pushed'}"
        add(open_repository(ours, os.environ), "empty", empty)
        pushed = once(Contestant([place.perun, "push", "empty"], ours)).wall
        yield Row(f"first push of {FIRST:,} profiles", pushed, push, "dvc push", None)


def _two(place: Place, name: str, versions: int, each: int) -> tuple[Path, Path, list[str]]:
    """A repository with profiles and a clone of it without any, both with the same remote; the versions."""
    ours, other = place.folder / name, place.folder / f"{name}-other"
    made = commits(ours, versions)
    profiles(ours, made, each)
    url = f"file://{place.folder / f'{name}-remote'}"
    add(open_repository(ours, os.environ), "team", url)
    _clone(ours, other, url)
    return ours, other, made


def _clone(ours: Path, other: Path, url: str) -> None:
    """Make a clone without profiles that has the remote."""
    subprocess.run(["git", "clone", "--quiet", ours, other], check=True)
    init(other, os.environ)
    add(open_repository(other, os.environ), "team", url)


def _flush(folder: Path) -> None:
    """Write what is still to be written, so that nobody waits for what others have done."""
    subprocess.run(["sync", "-f", folder], check=True)


def _dvc(place: Place, objects: Path) -> tuple[float, float]:
    """Seconds that dvc takes to push the same files to a folder, and to pull them into a new clone."""
    folder, other = place.folder / "dvc", place.folder / "dvc-other"
    folder.mkdir()
    shutil.copytree(objects, folder / "data")

    def run(where: Path, *arguments: str) -> float:
        return once(Contestant([str(DVC.resolve()), *arguments], where)).wall

    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    for arguments in (
        ("init", "--quiet"),
        ("config", "core.analytics", "false"),
        ("remote", "add", "-d", "team", str(place.folder / "dvc-remote")),
        ("add", "--quiet", "data"),
    ):
        run(folder, *arguments)
    _flush(folder)
    pushed = run(folder, "push", "--quiet")
    other.mkdir()
    subprocess.run(["git", "init", "--quiet"], cwd=other, check=True)
    run(other, "init", "--quiet")
    shutil.copy(folder / ".dvc/config", other / ".dvc/config")
    shutil.copy(folder / "data.dvc", other)
    _flush(folder)
    return pushed, run(other, "pull", "--quiet")
