"""`perun check all` beside the released `perun-toolsuite`, and its memory over short and long histories."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import repositories
from harness import Contestant, compete, once
from perun.profile.factory import Profile
from perun.store import Store
from perun.store.pending import link
from profiles import few
from report import Place, Row

PEER = "0.28.3"
COMMITS = 500
FEWER = 100
RESOURCES = 100
UIDS = 20
MANY_COMMITS = 100_000
MANY_PROFILES = 20_000
LONELY = 5_000
CONFIGURATIONS = 100
SLOW_EVERY = 25
"""One function takes three times as long in each so-manieth version: two changes, there and back."""
CHECK = ["--no-pager", "check", "all"]
MANUAL = ("--format", "manual")
"""The lines that the peer prints."""
# The peak of the process itself and the largest of those that it started, in KiB. It is asked through a small
# process between, for a new process begins with the peak of the one that it was made from.
MEASURED = (
    "import atexit, resource, runpy, sys\n"
    "def tell():\n"
    "    kinds = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN\n"
    "    print('peak', *(resource.getrusage(kind).ru_maxrss for kind in kinds), file=sys.stderr)\n"
    "atexit.register(tell)\n"
    "sys.argv = sys.argv[1:]\n"
    "runpy.run_path(sys.argv[0], run_name='__main__')\n"
)


class Peak(NamedTuple):
    """The most memory, in megabytes, of the command itself and of the largest process that it started."""

    own: float
    others: float


def check_all(place: Place) -> Iterator[Row]:
    """Time of a whole history, beside that of the peer; both find and store the same changes."""
    ours, theirs = _repository(place, COMMITS), place.folder / "check-peer"
    shutil.copytree(ours, theirs)
    expected = 2 * len(range(SLOW_EVERY, COMMITS, SLOW_EVERY))
    for command, folder, manual in ((place.perun, ours, MANUAL), (place.peer, theirs, ())):
        found = _output([command, *CHECK, *manual], folder).count("-> to:")
        if found != expected:
            raise SystemExit(f"{command} found {found} changes, there are {expected}")
    result = compete(
        {
            "ours": Contestant([place.perun, *CHECK], ours, _unchecked(ours)),
            "peer": Contestant([place.peer, *CHECK], theirs, _unchecked(theirs)),
        },
        few(place.rounds),
    )
    name = f"check all, {COMMITS} commits x {RESOURCES} resources ({UIDS} uids), AAT"
    yield Row(name, result["ours"].wall, result["peer"].wall, PEER, 1 / 10)
    yield Row("the same, CPU", result["ours"].cpu, result["peer"].cpu, PEER, None)


def check_memory(place: Place) -> Iterator[Row]:
    """Peaks over a long history beside those over a short one."""
    short, long = (_peak(place.perun, _repository(place, commits)) for commits in (FEWER, COMMITS))
    name = f"check all, {COMMITS} commits: peak memory"
    yield Row(name, long.own, short.own, f"{FEWER} commits", 1.1, "MB", is_rival=False)
    yield Row(
        "the same, largest other process (git, helpers)",
        long.others,
        short.others,
        f"{FEWER} commits",
        None,
        "MB",
        is_rival=False,
    )


def check_many(place: Place) -> Iterator[Row]:
    """A history of 100,000 versions with 20,000 profiles; and one whose HEAD alone has 5,000 of these."""
    spread = _spread(place, "check-many", MANY_COMMITS, MANY_PROFILES)
    for command, prepare in (("head", None), ("all", _unchecked(spread))):
        timing = once(Contestant([place.perun, "--no-pager", "check", command], spread, prepare))
        name = f"check {command}, {MANY_COMMITS:,} commits, {MANY_PROFILES:,} profiles"
        yield Row(f"{name}: first line", timing.first_output, 2, "limit", 1)
        yield Row("the same, whole", timing.wall, 60, "limit", 1)
        yield Row("the same, CPU", timing.cpu, 60, "limit", None)
    fewer = _spread(place, "check-fewer", MANY_COMMITS // 10, MANY_PROFILES // 10)
    peaks = [_peak(place.perun, folder).own for folder in (spread, fewer)]
    name = f"check all, {MANY_COMMITS:,} commits: peak memory"
    # The checksums of the versions that have a profile are kept: some 8 MB for ten times as many.
    yield Row(name, *peaks, f"{MANY_COMMITS // 10:,} commits", 1.5, "MB", is_rival=False)
    lonely = _spread(place, "check-lonely", MANY_COMMITS, MANY_PROFILES - LONELY, LONELY)
    timing = once(Contestant([place.perun, "--no-pager", "check", "head"], lonely))
    name = f"check head with {LONELY:,} profiles without a baseline, {MANY_COMMITS:,} commits"
    yield Row(name, timing.wall, 60, "limit", 1)


def _spread(place: Place, name: str, commits: int, versions: int, at_head: int = 0) -> Path:
    """A repository in which so many versions have a profile."""
    folder = place.folder / name
    repositories.history(folder, commits)
    subprocess.run([place.perun, "init", str(folder)], check=True, capture_output=True)
    repositories.many(folder, versions, CONFIGURATIONS, at_head)
    return folder


def _repository(place: Place, commits: int) -> Path:
    """So many versions with a profile each; made where it is missing."""
    folder = place.folder / f"check-{commits}"
    if not folder.exists():
        repositories.history(folder, commits)
        subprocess.run([place.perun, "init", str(folder)], check=True, capture_output=True)
        # The method that the peer has as well.
        rule = "[{method: average_amount_threshold}]"
        methods = ["config", "--local", "set", "degradation.strategies", rule]
        subprocess.run([place.perun, *methods], check=True, capture_output=True, cwd=folder)
        store = Store(folder / ".perun")
        for number, checksum in enumerate(reversed(repositories.checksums(folder))):
            item = profile(number), f"trace-{number}.perf", repositories.START + number
            link(store, checksum, [item])
    return folder


def profile(number: int) -> Profile:
    """The profile of one version, as of the trace collector and with a postprocessor: the peer wants one."""
    noise = random.Random(number)
    made = Profile(
        {
            "header": {
                "type": "mixed",
                "cmd": "./mybin",
                "args": "",
                "workload": "",
                "units": {"mixed(time delta)": "us"},
            },
            "collector_info": {"name": "trace", "params": {}},
            "postprocessors": [{"name": "regression_analysis", "params": {}}],
        }
    )
    slow = number and number % SLOW_EVERY == 0
    made.update_resources(
        [
            {
                "uid": f"SLList_search{uid}(SLList*, int)",
                "type": "mixed",
                "subtype": "time delta",
                "amount": round((3 if slow and uid == 7 else 1) * noise.gauss(100 + uid, 5), 3),
                "structure-unit-size": size,
            }
            for uid in range(UIDS)
            for size in range(RESOURCES // UIDS)
        ]
    )
    return made


def _peak(perun: str, folder: Path) -> Peak:
    """The most memory that `check all` takes there."""
    python = str(Path(perun).with_name("python"))
    command = [python, "-c", MEASURED, perun, *CHECK]
    done = subprocess.run(
        ["sh", "-c", '"$@"; exit $?', "sh", *command], cwd=folder, check=True, capture_output=True, text=True
    )
    own, others = (int(word) * 1024 / 1e6 for word in done.stderr.split()[-2:])
    return Peak(own, others)


def _unchecked(folder: Path) -> Callable[[], None]:
    """Forget what earlier checks found, so that each one stores it."""

    def prepare() -> None:
        for path in (folder / ".perun" / "objects").glob("*/*.changes"):
            path.unlink()

    return prepare


def _output(argv: list[str], cwd: Path) -> str:
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(argv)} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout
