"""A store in a database beside the same one in files: what lists take, and registering."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import repositories
from harness import Contestant, compete
from perun.repository.repository import open_repository
from perun.store.pending import link
from report import Place, Row

COMMITS, PENDING = 500, 50


def stores(place: Place) -> Iterator[Row]:
    """The same commands in two copies of a project, one with its store in SQLite."""
    folders = {"files": place.folder / "in-files", "sqlite": place.folder / "in-sqlite"}
    for kind, folder in folders.items():
        repositories.history(folder, COMMITS)
        options = ["--store", "sqlite"] if kind == "sqlite" else []
        subprocess.run([place.perun, "init", *options, str(folder)], check=True, capture_output=True)
        _fill(folder)
    for what, arguments in (
        (f"status, {PENDING} pending profiles", ["--no-pager", "status"]),
        (f"log --short, {COMMITS} profiles", ["--no-pager", "log", "--short"]),
    ):
        found = compete(
            {kind: Contestant([place.perun, *arguments], folder) for kind, folder in folders.items()},
            place.rounds,
        )
        what = f"store in SQLite: {what}"
        yield Row(what, found["sqlite"].wall, found["files"].wall, "files", None, is_rival=False)
        yield Row(f"{what}, CPU", found["sqlite"].cpu, found["files"].cpu, "files", None, is_rival=False)
    register = f"{place.perun} --no-pager add --keep-profile 0@p-{PENDING}@p"
    forget = f"{place.perun} --no-pager rm 0@i-{PENDING}@i"
    found = compete(
        {
            kind: Contestant(["sh", "-c", f"{register} && {forget}"], folder)
            for kind, folder in folders.items()
        },
        place.rounds,
    )
    what = f"store in SQLite: add and rm of {PENDING} profiles"
    yield Row(what, found["sqlite"].wall, found["files"].wall, "files", None, is_rival=False)


def _fill(folder: Path) -> None:
    store = open_repository(folder, dict(os.environ)).store
    every = repositories.checksums(folder)
    with store.lock(), store.files.together():
        for number, checksum in enumerate(every[1:]):
            profile = repositories.time_profile(0.1 + number * 1e-6)
            link(store, checksum, [(profile, f"time-{number}.perf", repositories.START + number)])
    for number in range(PENDING):
        profile = repositories.time_profile(0.2 + number * 1e-6, str(number))
        profile["origin"] = every[0]
        store.pending.save(profile, f"time-{number}")
    store.pending.refresh()
    store.files.close()
