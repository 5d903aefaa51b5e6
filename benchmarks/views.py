"""Pages of `perun show`: how long they take beside the released `perun-toolsuite`, how large they are, and
how soon a browser has drawn them."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import repositories
from harness import Contestant, compete
from perun.profile.factory import Profile
from perun.profile.format.json import dumps_object
from profiles import few
from report import Measured, Place, Row

PEER = "0.28.3"
POINTS = 2_000
MANY_POINTS = 1_000_000
FRAMES = 100_000
DEEPEST = 60
NEAR = 2_000
"""How far back the caller of a frame is at most; it makes stacks some tens of frames deep."""
LARGEST_KB = 1_500
OPENS_WITHIN = 2.0
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--dump-dom", "--timeout=60000"),
)
PAGE = "page.html"


def scatter(place: Place) -> Iterator[Row]:
    """Time to the page of some points, beside the peer, and of very many; sizes of both."""
    ours, theirs = _repository(place, "views"), _repository(place, "views-peer")
    for folder in (ours, theirs):
        (folder / "few.perf").write_bytes(dumps_object(points(POINTS)))
    command = ["show", "./few.perf", "scatter", "-f", PAGE]
    result = compete(
        {
            "ours": Contestant([place.perun, *command], ours),
            "peer": Contestant([place.peer, *command], theirs),
        },
        few(place.rounds),
    )
    name = f"show scatter, {POINTS:,} points"
    yield Row(name, result["ours"].wall, result["peer"].wall, PEER, 1 / 3)
    yield Row("the same, size of the page", _kilobytes(ours / PAGE), LARGEST_KB, "limit", 1, "kB")

    (ours / "many.perf").write_bytes(dumps_object(points(MANY_POINTS)))
    many = [place.perun, "show", "./many.perf", "scatter", "-f", PAGE]
    wall = compete({"many": Contestant(many, ours)}, few(place.rounds))["many"].wall
    yield Row(f"show scatter, {MANY_POINTS:,} points", wall, result["peer"].wall, f"{PEER}, {POINTS:,}", None)
    yield Row("the same, size of the page", _kilobytes(ours / PAGE), LARGEST_KB, "limit", 1, "kB")


def flamegraph(place: Place) -> Iterator[Row]:
    """How long a browser takes from the address to the drawn graph."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print("no chromium is installed, in which flame graphs could be opened", file=sys.stderr)
        return
    folder = _repository(place, "views-flame")
    (folder / "frames.perf").write_bytes(dumps_object(stacks(FRAMES)))
    command = [place.perun, "show", "./frames.perf", "flamegraph", "-f", PAGE]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    times = [_drawn(browser, folder, number) for number in range(few(place.rounds))]
    name = f"flame graph of {FRAMES:,} frames, drawn in chromium"
    yield Row(name, Measured(times), OPENS_WITHIN, "limit", 1)


def points(number: int) -> Profile:
    """Times of a function depending on the size of a structure, as the trace collector has them."""
    chance = np.random.default_rng(1)
    x = chance.integers(0, 12_000, number)
    y = np.abs(0.004 * x + chance.normal(5, 1, number)).round(3)
    uid = "SLList_search(SLList*, int)"
    return Profile(
        {
            "header": {
                "type": "mixed",
                "cmd": "./mybin",
                "args": "",
                "workload": "",
                "units": {"mixed(time delta)": "us"},
            },
            "collector_info": {"name": "trace", "params": {}},
            "postprocessors": [],
            "resource_type_map": {f"{uid}#0": {"uid": uid, "type": "mixed", "subtype": "time delta"}},
            "resources": {f"{uid}#0": {"amount": y.tolist(), "structure-unit-size": x.tolist()}},
        }
    )


def stacks(frames: int) -> Profile:
    """A memory profile whose flame graph has about that many frames, each function with its own name."""
    chance = random.Random(7)
    parents, depths = [-1], [0]
    for node in range(1, frames):
        parent = chance.randrange(max(0, node - NEAR), node)
        while depths[parent] >= DEEPEST:
            parent = parents[parent]
        parents.append(parent)
        depths.append(depths[parent] + 1)
    records = [{"function": f"function_{n}", "source": f"file_{n % 50}.c", "line": 1} for n in range(frames)]
    made = Profile(
        header={"type": "memory", "cmd": "./mybin", "args": "", "workload": "", "units": {"memory": "B"}},
        collector_info={"name": "memory", "params": {}},
    )
    made.update_resources(
        {
            "type": "memory",
            "subtype": "malloc",
            "amount": chance.randint(1, 1000),
            "uid": records[leaf],
            "trace": [records[node] for node in _up(parents, leaf)],
        }
        for leaf in sorted(set(range(frames)) - set(parents))
    )
    return made


def _up(parents: list[int], node: int) -> Iterator[int]:
    while node >= 0:
        yield node
        node = parents[node]


def _drawn(browser: str, folder: Path, number: int) -> float:
    """Seconds from the address to the drawn page, as the page itself tells, in a browser of its own."""
    data = folder / f"browser-{number}"
    address = (folder / PAGE).as_uri()
    argv = [browser, *FLAGS, f"--user-data-dir={data}", address]
    text = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    shutil.rmtree(data, ignore_errors=True)
    found = re.search(r'<html[^>]* data-drawn="(\d+)"', text)
    if not found:
        raise SystemExit(f"{browser} did not draw {address}")
    return int(found[1]) / 1000


def _repository(place: Place, name: str) -> Path:
    folder = place.folder / name
    if not folder.exists():
        repositories.history(folder, 1)
        subprocess.run([place.perun, "init", str(folder)], check=True, capture_output=True)
    return folder


def _kilobytes(path: Path) -> float:
    return path.stat().st_size / 1000
