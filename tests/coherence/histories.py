"""Generated histories: what versions there are, and what was measured in each, as data that can be smaller.

A history is stored as the real store does it; where one is asked about, only what is stored is known.
"""

from __future__ import annotations

import math
import random
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.profile import session as sessions
from perun.profile.factory import Profile
from perun.repository.repository import Repository
from perun.store.pending import link

START: Final = 1_700_000_000
HOUR: Final = 3600
NOISE: Final = 0.01
MACHINES: Final = ("Fast 3000", "Slow 100")
KERNELS: Final = ("6.1.0", "6.9.1")
FAMILY: Final = ("1", "4", "9")
RUNS: Final = (3, 5, 10)
LEVELS: Final = (0.01, 0.002)
"""The errors that a session of pairs has spent, of both confidences."""


class Benchmark(NamedTuple):
    """What is measured. :param kind: one of `time`, `family`, `memory`, `instructions` and `printed`."""

    kind: str
    cmd: str
    args: str = ""
    workload: str = ""


class Made(NamedTuple):
    """A stored profile.

    :param version: the place of its commit. :param benchmark: the place of what was measured.
    :param values: by workload. :param session: empty for one that was measured alone. :param side: of a
        comparison. :param order: of measuring. :param kernel: of the machine, and
        :param speed: how many times as long as usual it took for the same work; 0 where that is unknown.
    :param measured: the place of the version that was measured, where several share that.
    """

    version: int
    benchmark: int
    values: Mapping[str, tuple[float, ...]]
    order: int
    machine: int = 0
    session: str = ""
    round: int = 0
    side: str = ""
    kernel: int = 0
    speed: float = 0.0
    measured: int | None = None


class History(NamedTuple):
    """Commits by their parents, the oldest first, and profiles. :param truth: by benchmark the level of each
    version, without noise. :param seed: it was made of."""

    seed: int
    parents: tuple[tuple[int, ...], ...]
    benchmarks: tuple[Benchmark, ...]
    profiles: tuple[Made, ...]
    truth: tuple[tuple[float, ...], ...] = ()
    unit: str = "s"


# -- making -------------------------------------------------------------------------------------------------

_POOL: Final = (
    Benchmark("time", "./app"),
    Benchmark("time", "./app", "--all", "big [1].txt"),
    Benchmark("family", "./fam"),
    Benchmark("memory", "./app"),
    Benchmark("instructions", "./app", "", "10"),
    Benchmark("printed", "./stat"),
    Benchmark("time", "./zero"),
    Benchmark("time", "./busy"),
)


def generated(seed: int, versions: tuple[int, int] = (5, 14), *, most: int = 4) -> History:
    """A random history. :param most: benchmarks."""
    chance = random.Random(seed)
    count = chance.randint(*versions)
    parents = _parents(chance, count)
    benchmarks = tuple(chance.sample(_POOL, chance.randint(1, most)))
    profiles: list[Made] = []
    truth = []
    for number, benchmark in enumerate(benchmarks):
        levels = _levels(chance, benchmark, count)
        truth.append(levels)
        profiles += _measured(chance, number, benchmark, levels)
    profiles.sort(key=lambda one: one.order)
    made = _sharing(seed, list(_with_speeds(seed, profiles, count)), parents, truth)
    return History(seed, parents, benchmarks, tuple(made), tuple(truth))


def _with_speeds(seed: int, profiles: Sequence[Made], count: int) -> Iterator[Made]:
    """In every second history the speed of the machine is mostly known, and changes for good at a version."""
    chance = random.Random(f"the speed of {seed}")
    known, factor, at = chance.random() < 0.5, chance.choice((0.6, 1.0, 1.1, 1.5)), chance.randrange(count)
    for one in profiles:
        speed = (factor if one.version >= at else 1.0) * math.exp(NOISE * chance.gauss(0, 1))
        yield one._replace(speed=speed * (known and chance.random() < 0.95))


def _sharing(
    seed: int, profiles: Sequence[Made], parents: Sequence[Sequence[int]], truth: Sequence[Sequence[float]]
) -> Iterator[Made]:
    """In every second history some versions that are as fast as the one before share its sessions."""
    chance = random.Random(f"what {seed} shares")
    share = chance.choice((0.0, 0.6))
    measured = list(range(len(parents)))
    for place, own in enumerate(parents):
        if own and chance.random() < share and all(one[place] == one[own[0]] for one in truth):
            measured[place] = measured[own[0]]
    visits = {(one.version, one.benchmark, one.session, one.round): one for one in profiles if not one.side}
    for one in profiles:
        place = measured[one.version]
        found = visits.get((place, one.benchmark, one.session, one.round))
        if found is None or not one.session or one.side or measured.count(place) == 1:
            yield one
        else:
            yield found._replace(version=one.version, order=one.order, measured=place)


def _parents(chance: random.Random, count: int) -> tuple[tuple[int, ...], ...]:
    """Mostly one line; sometimes a branch that is merged."""
    parents: list[tuple[int, ...]] = [()]
    line, side = 0, None
    for place in range(1, count):
        if side is None and place > 1 and chance.random() < 0.12:
            parents.append((chance.randrange(place),))
            side = place
        elif side is not None and chance.random() < 0.3:
            parents.append((line, side))
            line, side = place, None
        elif side is not None and chance.random() < 0.5:
            parents.append((side,))
            side = place
        else:
            parents.append((line,))
            line = place
    if side is not None and count - 1 in (line, side) and len(parents) > 2:  # HEAD knows all
        tips = [place for place in range(count - 1) if not any(place in own for own in parents[:-1])]
        parents[-1] = tuple(dict.fromkeys((*parents[-1], *tips)))
    return tuple(parents)


def _levels(chance: random.Random, benchmark: Benchmark, count: int) -> tuple[float, ...]:
    """Steady, with steps, spikes, drifts, and steps that are taken back."""
    factors = [1.0] * count
    for _ in range(chance.choice((0, 1, 1, 2))):
        place, size = chance.randrange(count), chance.choice((1.03, 1.06, 1.2, 1.5, 3.0, 0.7, 0.9))
        last = chance.choice((count, count, place + 1, place + 3))
        for number in range(place, min(last, count)):
            factors[number] *= size
    if chance.random() < 0.15:
        factors = [one * 1.01**number for number, one in enumerate(factors)]
    base = {"memory": 40_000.0, "instructions": 1e6, "printed": 12.0}.get(benchmark.kind, 0.2)
    return tuple(base * one for one in factors)


def _measured(
    chance: random.Random, number: int, benchmark: Benchmark, levels: Sequence[float]
) -> Iterator[Made]:
    count = len(levels)
    there = [place for place in range(count) if chance.random() < chance.choice((1.0, 0.9, 0.6))]
    machine = chance.choice((0, 0, 0, 1))
    kernel_at = chance.randrange(count) if chance.random() < 0.2 else count
    names = FAMILY if benchmark.kind == "family" else ("",)
    exact = benchmark.kind in ("memory", "instructions")
    order = chance.randrange(10) * 100_000
    how = chance.choice(("alone", "alone", "rounds", "twice", "pairs"))
    stretches = {
        "alone": [("", 0, place) for place in there],
        "twice": [("", 0, place) for _ in range(2) for place in there],
        "rounds": [
            (f"s{part}-{number}", turn, place)
            for part in range(chance.choice((1, 1, 2)))
            for turn in range(chance.choice((2, 3, 5)))
            for place in chance.sample(there, len(there))
        ],
        "pairs": [("", 0, place) for place in there[:-2]],
    }[how]
    if benchmark.kind == "family":
        lacking = {chance.choice(there or [0]): chance.choice(FAMILY)} if chance.random() < 0.3 else {}
    else:
        lacking = {}
    for session, turn, place in stretches:
        own = math.exp(NOISE * chance.gauss(0, 1))
        runs = chance.choice(RUNS[:2]) if session else chance.choice(RUNS)
        on = 1 - machine if chance.random() < 0.04 else machine
        order += 1
        yield Made(
            place, number,
            {
                name: _values(chance, benchmark, levels[place], own * float(name or 1), 1 if exact else runs)
                for name in names if name != lacking.get(place)
            },
            order, on, session, turn, kernel=int(not session and place >= kernel_at),
        )  # fmt: skip
    if how == "pairs" and len(there) > 1 and not names[1:]:
        for side, place in zip(("base", "head"), there[-2:], strict=True):
            order += 1
            values = _values(chance, benchmark, levels[place], 1.0, 1 if exact else 12)
            yield Made(place, number, {"": values}, order, machine, f"c{number}", 0, side)


def _values(
    chance: random.Random, benchmark: Benchmark, level: float, factor: float, runs: int
) -> tuple[float, ...]:
    if runs == 1:  # a count
        return (float(round(level)),)
    values = [level * factor * math.exp(NOISE * chance.gauss(0, 1)) for _ in range(runs)]
    if benchmark.kind == "printed":
        return tuple(round(one, 2) for one in values) if chance.random() < 0.8 else (0.0,) * runs
    if benchmark.cmd == "./zero" and chance.random() < 0.3:
        return tuple(0.0 if chance.random() < 0.5 else one for one in values)
    return tuple(values)


# -- storing ------------------------------------------------------------------------------------------------


def commits(folder: Path, history: History, branch: str = "main") -> list[str]:
    """Make the commits of a history; their checksums, by place."""
    lines = []
    for place, parents in enumerate(history.parents):
        message = f"Change {place}\n"
        links = "".join(
            f"{'merge' if number else 'from'} :{parent + 1}\n" for number, parent in enumerate(parents)
        )
        lines.append(
            f"commit refs/heads/{branch}\nmark :{place + 1}\n"
            f"committer Ada <ada@example.org> {START + HOUR * place} +0000\n"
            f"data {len(message)}\n{message}{links}\n"
        )
        lines.append(f"get-mark :{place + 1}\n")
    importing = ["git", "fast-import", "--quiet"]
    done = subprocess.run(
        importing, cwd=folder, input="".join(lines), text=True, check=True, stdout=subprocess.PIPE
    )
    return done.stdout.split()


def store(repo: Repository, history: History, checksums: Sequence[str]) -> None:
    """Register its profiles in their versions."""
    by_version: dict[int, list[tuple[Profile, str, float]]] = {}
    for number, made in enumerate(history.profiles):
        item = (profile_of(history, made, checksums), f"{number}.perf", float(START + made.order))
        by_version.setdefault(made.version, []).append(item)
    for version, items in by_version.items():
        link(repo.store, checksums[version], items)


def profile_of(history: History, made: Made, checksums: Sequence[str] = ()) -> Profile:
    """The profile as it is stored. :param checksums: of the versions, where several share it."""
    benchmark = history.benchmarks[made.benchmark]
    kind, unit, collector = {
        "memory": ("memory", "B", "memory"),
        "instructions": ("instructions", "", "instructions"),
        "printed": ("mixed", "", "printing"),
    }.get(benchmark.kind, ("time", history.unit, "time"))
    cpu = {"model": MACHINES[made.machine], "total": 4}
    times = [2e7 * made.speed] * (12 if made.side else 1)
    speed = {"speed": {"loop": 1, "processor": times, "wall": times}} if made.speed else {}
    profile = Profile({
        "header": {
            "type": kind, "cmd": benchmark.cmd, "args": benchmark.args, "workload": benchmark.workload,
            "units": {kind: unit},
        },
        "machine": {"cpu": cpu, "architecture": "x86_64", "release": KERNELS[made.kernel], **speed},
        "collector_info": {"name": collector, "params": {}},
        "postprocessors": [],
    })  # fmt: skip
    profile.update_resources(list(_rows(benchmark, made.values)))
    if made.session:
        levels = LEVELS if made.side else None
        one = sessions.Session(made.session, made.side, made.round, bool(made.side), levels)  # type: ignore[arg-type]
        if made.measured is not None and checksums:
            reason = "all files are the same" if made.version != made.measured else ""
            one = one._replace(measured=checksums[made.measured], reason=reason)
        sessions.mark(profile, one)
    return profile


def _rows(benchmark: Benchmark, values: Mapping[str, tuple[float, ...]]) -> Iterator[dict[str, Any]]:
    if benchmark.kind == "memory":
        (amount,) = values[""]
        yield {"uid": benchmark.cmd, "type": "memory", "subtype": "peak", "amount": amount}
        yield {"uid": benchmark.cmd, "type": "memory", "subtype": "allocated", "amount": 2 * amount}
        return
    if benchmark.kind == "instructions":
        (amount,) = values[""]
        for uid, own, whole in (("main", 1000.0, amount), ("sort", amount - 1000, amount - 1000)):
            for subtype, one in (("exclusive", own), ("inclusive", whole)):
                yield {"uid": uid, "type": "instructions", "subtype": subtype, "amount": one}
        return
    if benchmark.kind == "printed":
        for number, amount in enumerate(values[""]):
            yield {"uid": "rate", "type": "mixed", "subtype": "speed", "amount": amount, "order": number}
        return
    for workload, own in values.items():
        named = {"workload": int(workload)} if workload else {}
        # What the processor limits has another clock that stands for it.
        used = 0.97 if benchmark.cmd == "./busy" else 0.75
        for subtype, share in (("real", 1.0), ("user", used), ("sys", 0.01)):
            for number, amount in enumerate(own):
                moved = share * amount * (1 + 0.5 * (number % 3 == 1) * (subtype == "sys"))
                yield {"uid": benchmark.cmd, "type": "time", "subtype": subtype, "order": number,
                       "amount": moved, **named}  # fmt: skip


# -- making smaller -----------------------------------------------------------------------------------------


def smaller(history: History) -> Iterator[History]:
    """Histories with less in them, the much smaller ones first."""
    for number in range(len(history.benchmarks)):
        if len(history.benchmarks) > 1:
            yield _without_benchmark(history, number)
    last = len(history.parents) - 1
    for keep in (last // 2, last):
        if 0 < keep <= last:
            yield _first(history, keep)
    size = len(history.profiles)
    for step in (size // 2, size // 4, 1):
        for start in range(0, size, step) if step else ():
            yield history._replace(profiles=history.profiles[:start] + history.profiles[start + step :])
    linear = tuple((place - 1,) if place else () for place in range(last + 1))
    if history.parents != linear:
        yield history._replace(parents=linear)
    for digits in (2, 3):
        rounded = tuple(
            one._replace(values={
                name: tuple(float(f"{value:.{digits}g}") for value in own)
                for name, own in one.values.items()
            })
            for one in history.profiles
        )  # fmt: skip
        if rounded != history.profiles:
            yield history._replace(profiles=rounded)


def _without_benchmark(history: History, number: int) -> History:
    profiles = tuple(
        one._replace(benchmark=one.benchmark - (one.benchmark > number))
        for one in history.profiles
        if one.benchmark != number
    )
    left = history.benchmarks[:number] + history.benchmarks[number + 1 :]
    truth = history.truth[:number] + history.truth[number + 1 :]
    return history._replace(benchmarks=left, profiles=profiles, truth=truth)


def _first(history: History, count: int) -> History:
    """The history up to the version before that number."""
    kept = tuple(one for one in history.profiles if one.version < count)
    return history._replace(parents=history.parents[:count], profiles=kept)
