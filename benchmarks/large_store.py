"""What commands about one version, or about all of it, take in a store of many profiles, 100 a version."""

from __future__ import annotations

import json
import os
import subprocess
import zlib
from collections.abc import Iterator
from hashlib import sha1
from operator import attrgetter
from pathlib import Path

import repositories
from check import MEASURED
from harness import Contestant, once
from perun.core.atomic import NewFile
from perun.profile.format.head import COLUMNAR_FROM, object_body
from perun.profile.head import ProfileHeader
from perun.repository.repository import open_repository
from perun.store import Store, tree
from perun.store.index import IndexEntry
from perun.store.summaries import profile_summary_of
from report import Place, Row

VERSIONS, SERIES = 500, 100
AMOUNT = 0.7654321
"""That of the profiles that all others are made of, by exchanging its digits."""


def large_store(place: Place) -> Iterator[Row]:
    """CPU time and memory of each command, with the store in files, and in SQLite."""
    for kind in ("files", "sqlite"):
        folder = place.folder / f"large-{kind}"
        _make(folder, place.perun, kind, VERSIONS)
        for what, words, goal, limit in (
            ("status", ["status"], 0.1, 20),
            ("log --short -n 100", ["log", "--short", "-n", "100"], 0.2, None),
            ("add of one", ["add", "--keep-profile", "0@p"], 0.1, None),
            ("check head", ["check", "head"], 0.5, None),
            ("gc --dry-run", ["gc", "--dry-run"], 0.5, None),
            ("fsck", ["fsck"], VERSIONS * SERIES / 20_000, None),
        ):
            spent, peak = _measured(place.perun, words, folder)
            name = f"{VERSIONS * SERIES:,} profiles in {kind}: {what}"
            yield Row(f"{name}, CPU", spent, goal, "goal", limit, is_rival=False)
            yield Row("the same, peak memory", peak, 300, "goal", 1, "MB", is_rival=False)


def _measured(perun: str, words: list[str], folder: Path) -> tuple[float, float]:
    """Seconds of CPU time, and the peak of memory in MB of another call."""
    words = [perun, "--no-pager", *words]
    spent = once(Contestant(words, folder)).cpu
    python = str(Path(perun).with_name("python"))
    command = ["sh", "-c", '"$@"; exit $?', "sh", python, "-c", MEASURED, *words]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return spent, int(done.stderr.split()[-2]) * 1024 / 1e6


def _make(folder: Path, perun: str, kind: str, versions: int) -> None:
    """A repository with a profile of each series in each version, and one pending that measures another."""
    repositories.history(folder, versions)
    options = ["--store", "sqlite"] if kind == "sqlite" else []
    subprocess.run([perun, "init", *options, str(folder)], check=True, capture_output=True)
    store = open_repository(folder, dict(os.environ)).store
    models = []
    for series in range(SERIES):
        profile = repositories.time_profile(AMOUNT, str(series))
        fact = json.dumps(profile_summary_of(profile), default=attrgetter("value"))
        models.append((ProfileHeader.of(profile), object_body(profile, COLUMNAR_FROM), fact))
    every = repositories.checksums(folder)
    with store.lock(), store.files.together():
        for number, minor in enumerate(every):
            _fill(store, minor, number, models, kind)
    store.summaries.rebuild()
    pending = repositories.time_profile(0.2)
    pending["origin"] = every[0]
    store.pending.save(pending, "time")
    store.files.close()


def _fill(
    store: Store, minor: str, number: int, models: list[tuple[ProfileHeader, bytes, str]], kind: str
) -> None:
    """Register a profile of each model in a version, its object, its entry and what is known of it."""
    amount = repr(round(0.5 + number * 1e-7, 7))
    entries, facts, files = [], {}, []
    for series, (head, model, fact) in enumerate(models):
        body = model.replace(repr(AMOUNT).encode(), amount.encode())
        content = b"profile %s %d\0" % (head.type.encode(), len(body)) + body
        checksum = sha1(content).hexdigest()
        files.append(NewFile(tree.object_path(store.objects.root, checksum), [zlib.compress(content, 1)]))
        facts[checksum] = fact.replace(repr(AMOUNT), amount).encode()
        entries.append(
            IndexEntry(repositories.START + number, checksum, f"time-{number}-{series}.perf", head)
        )
    if kind == "files":
        for file in files:
            file.path.parent.mkdir(exist_ok=True)
            file.path.write_bytes(*file.pieces)
    else:
        store.files.write_many(files, store.objects.root)
    store.indexes.add(minor, entries)
    store.profile_summaries._cache.put("facts", facts)
