"""A repository with very many profiles, written as files at once: for what sharing them takes."""

from __future__ import annotations

import os
import subprocess
import zlib
from contextlib import chdir
from pathlib import Path

from perun.profile.factory import Profile
from perun.profile.format.head import COLUMNAR_FROM, object_body
from perun.profile.head import ProfileHeader
from perun.repository.init import init
from perun.store import Store
from perun.store.index import IndexEntry, serialize
from perun.store.objects import encode

START = 1_600_000_000


def commits(folder: Path, count: int) -> list[str]:
    """Make a git repository with so many commits; their checksums, the oldest first."""
    folder.mkdir(parents=True)
    _git(folder, "init", "--quiet", "--initial-branch=main")
    lines = []
    for number in range(count):
        message = f"version {number}"
        lines += [
            "commit refs/heads/main",
            f"committer Ada <ada@example.org> {START + number * 3600} +0000",
            f"data {len(message)}",
            message,
            f"M 100644 inline file\ndata {len(str(number))}\n{number}",
            "",
        ]
    subprocess.run(
        ["git", "-C", folder, "fast-import", "--quiet"], input="\n".join(lines).encode(), check=True
    )
    _git(folder, "reset", "--quiet", "--hard", "main")
    with chdir(folder):
        init(folder, os.environ)
    return _git(folder, "rev-list", "--reverse", "main").split()


def profiles(folder: Path, versions: list[str], each: int, seed: int = 0) -> None:
    """Register so many profiles in each version.

    Nothing is flushed to the disk, which takes most of the time.
    """
    store = Store(folder / ".perun")
    for place, version in enumerate(versions):
        entries = []
        for number in range(each):
            profile = _profile(seed, place, number)
            checksum, content = encode("time", object_body(profile, COLUMNAR_FROM))
            path = store.object_path(checksum)
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(zlib.compress(content))
            name = f"time-{seed}-{number}.perf"
            entries.append(
                IndexEntry(START + place * 3600 + number, checksum, name, ProfileHeader.of(profile))
            )
        path = store.indexes.path(version)
        known = store.indexes.read(version)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(serialize([*known, *entries]))


def _profile(seed: int, place: int, number: int) -> Profile:
    values = [1.0 + (seed * 7 + place * 31 + number * 17 + run * 13) % 1009 / 1009 for run in range(20)]
    profile = Profile(
        {
            "header": {
                "type": "time",
                "units": {"time": "s"},
                "cmd": "./prog",
                "args": f"-n {number} -s {seed}",
                "workload": "",
            },
            "collector_info": {"name": "time", "params": {"repeat": 10, "warmup": 3}},
            "postprocessors": [],
            "machine": {"cpu": {"model": "Intel Xeon", "total": 8}, "architecture": "x86_64"},
        }
    )
    profile.update_resources(
        [
            {"type": "time", "subtype": "real" if run < 10 else "user", "uid": "prog", "order": run % 10,
             "amount": value}
            for run, value in enumerate(values)
        ]
    )  # fmt: skip
    return profile


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", folder, *arguments], check=True, capture_output=True, text=True)
    return done.stdout
