"""Sharing profiles: what is new among very many, a first pull beside copying, and `dvc` on the same files."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from harness import Contestant, once
from perun.porcelain.init import init
from perun.porcelain.repository import open_repository
from perun.porcelain.sharing import transfer
from perun.porcelain.sharing.remotes import add
from perun.remote.contract import MAX_PIECE, Listed
from perun.remote.file import FileRemote
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

    def list(self, prefix: str) -> Iterator[Listed]:
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
    samples: dict[str, list[float]] = {"push": [], "pull": []}
    cpu: dict[str, list[float]] = {"push": [], "pull": []}
    for number in range(place.rounds):
        profiles(ours, versions[-1:], 10, seed=number + 1)
        for verb, folder in (("push", ours), ("pull", other)):
            timing = once(Contestant([place.perun, verb], folder))
            samples[verb].append(timing.wall)
            cpu[verb].append(timing.cpu)
    for verb in ("push", "pull"):
        what = f"{verb} of 10 new profiles among {VERSIONS * EACH:,}"
        yield Row(what, Measured(samples[verb]), GOAL, "the goal", 1.0, is_rival=False)
        yield Row("the same, CPU", Measured(cpu[verb]), GOAL, "the goal", 1.0, is_rival=False)
        yield Count(f"requests of that {verb}", max(requests[verb]), REQUESTS, most=REQUESTS)


def first_pull(place: Place) -> Iterator[Row | Count]:
    """The first pull of 10,000 profiles beside copying their files, and beside dvc."""
    ours, other, _versions = _two(place, "first", FIRST // EACH, EACH)
    remote = FileRemote(place.folder / "first-remote")
    transfer.push(open_repository(ours, os.environ), remote)
    objects, copied = ours / ".perun/objects", place.folder / "copied"
    rounds = min(place.rounds, 3)
    # All have to be on the disk in the end.
    plain = {
        "cp -r, sync": 'cp -r "$0" "$1" && sync -f "$1"',
        "tar, sync": 'mkdir "$1" && tar -c -C "$0" . | tar -x -C "$1" && sync -f "$1"',
    }
    copying: dict[str, list[float]] = {name: [] for name in plain}
    pulling = []
    for _ in range(rounds):
        for name, command in plain.items():
            shutil.rmtree(copied, ignore_errors=True)
            timing = once(Contestant(["sh", "-c", command, str(objects), str(copied)], place.folder))
            copying[name].append(timing.wall)
        shutil.rmtree(other / ".perun")
        init(other, os.environ)
        add(open_repository(other, os.environ), "team", remote.url)
        pulling.append(once(Contestant([place.perun, "pull"], other)).wall)
    pulled = Measured(pulling)
    for name, samples in copying.items():
        limit = 2.0 if name.startswith("cp") else None
        yield Row(f"first pull of {FIRST:,} profiles", pulled, Measured(samples), name, limit, is_rival=False)
    if DVC.exists():
        push, pull = _dvc(place, objects)
        yield Row(f"first pull of {FIRST:,} profiles", pulled, pull, "dvc pull", None)
        shutil.rmtree(remote.folder)
        began = time.perf_counter()
        subprocess.run([place.perun, "push"], cwd=ours, check=True, capture_output=True)
        yield Row(f"first push of {FIRST:,} profiles", time.perf_counter() - began, push, "dvc push", None)


def _two(place: Place, name: str, versions: int, each: int) -> tuple[Path, Path, list[str]]:
    """A repository with profiles and a clone of it without any, both with the same remote; the versions."""
    ours, other = place.folder / name, place.folder / f"{name}-other"
    made = commits(ours, versions)
    profiles(ours, made, each)
    subprocess.run(["git", "clone", "--quiet", ours, other], check=True)
    init(other, os.environ)
    for folder in (ours, other):
        add(open_repository(folder, os.environ), "team", f"file://{place.folder / f'{name}-remote'}")
    return ours, other, made


def _dvc(place: Place, objects: Path) -> tuple[float, float]:
    """Seconds that dvc takes to push the same files to a folder, and to pull them into an empty cache."""
    folder = place.folder / "dvc"
    folder.mkdir()
    shutil.copytree(objects, folder / "data")

    def run(*arguments: str) -> float:
        return once(Contestant([str(DVC.resolve()), *arguments], folder)).wall

    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    for arguments in (
        ("init", "--quiet"),
        ("config", "core.analytics", "false"),
        ("remote", "add", "-d", "team", str(place.folder / "dvc-remote")),
        ("add", "--quiet", "data"),
    ):
        run(*arguments)
    pushed = run("push", "--quiet")
    shutil.rmtree(folder / ".dvc/cache")
    shutil.rmtree(folder / "data")
    return pushed, run("pull", "--quiet")
