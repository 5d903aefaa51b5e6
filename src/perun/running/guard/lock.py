"""The lock: what commands cost by counts, a line a row, to be committed.

    toolchain: Debian 12, glibc 2.36, x86_64
    ./parse 400:
      instructions: 188686
      instructions of main: 6473
      peak memory: 1425
    "./parse {depth}":
      growth of instructions for depth 100..1600: 1.00

Where the toolchain differs, counts do for no reason of the program: then only growth is compared.
"""

from __future__ import annotations

import heapq
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.core import atomic, machine
from perun.core.config.reader import loads
from perun.core.errors import ConfigError
from perun.core.process.command import find_executable
from perun.measurement.contract import ROOM, Keeping, exponent, grown, like_before
from perun.native.elf import Damaged, ElfFile
from perun.repository.repository import Repository
from perun.running.guard.contracts import METRICS, Contract, contract, text_of
from perun.running.run.pre_run import environment

FILE: Final = "perun.lock"
LARGEST: Final = 16 << 20
TOOLCHAIN: Final = "toolchain"
FUNCTIONS: Final = 10
"""The functions of a command with the most instructions that have rows."""
_GROWTH: Final = re.compile(r"growth of .+ for (\w+) (\S.*)")
"""The name of a row that is an exponent, of so many sizes."""
_HEAD: Final = "# What programs cost, by counts. Written by `perun lock`, compared by `perun lock --check`.\n"


class CountLock(NamedTuple):
    """What was counted. :param toolchain: with which. :param rows: by command and by what was counted."""

    toolchain: str
    rows: Mapping[str, Mapping[str, float]]


def read(path: Path) -> CountLock:
    """The lock in a file; an empty one where there is none.

    :raises ConfigError: names what is no lock.
    """
    text = text_of(path, LARGEST) or ""
    if re.search(r"^<{7} ", text, re.MULTILINE):
        hint = "git checkout --ours perun.lock; perun lock; from then on: perun lock --install-merge-driver"
        raise ConfigError(f"{path}: git has left a conflict in it", hint)
    root = loads(text, str(path)) or {}
    if not isinstance(root, dict):
        raise ConfigError(f"{path}: it is no lock", "write it anew with: perun lock")
    rows: dict[str, dict[str, float]] = {}
    for command, own in root.items():
        if command == TOOLCHAIN:
            continue
        if not isinstance(own, dict) or not all(_is_count(value) for value in own.values()):
            raise ConfigError(f"{path}: {command}: a row is no number", "write it anew with: perun lock")
        rows[str(command)] = {str(name): float(value) for name, value in own.items()}
    return CountLock(str(root.get(TOOLCHAIN, "")), rows)


def _is_count(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1 << 63


def write(path: Path, lock: CountLock) -> None:
    """Write it: the rows in the order of their commands, the same for the same counts."""
    atomic.write(path, "".join(_lines(lock)).encode())


def _lines(lock: CountLock) -> Iterator[str]:
    yield _HEAD
    yield f"{TOOLCHAIN}: {json.dumps(lock.toolchain)}\n"
    for command, own in sorted(lock.rows.items()):
        yield f"{_key(command)}:\n"
        for name, value in sorted(own.items(), key=_place):
            yield f"  {_key(name)}: {value:.{2 if _GROWTH.match(name) else 0}f}\n"


def _key(text: str) -> str:
    plain = (
        all(char.isalnum() or char in " ./_-+=" for char in text)
        and text[:1] in "./abcdefghijklmnopqrstuvwxyz"
    )
    return text if plain and text == text.strip() else json.dumps(text)


def _place(row: tuple[str, float]) -> tuple[int, str]:
    """Totals in the order of the metrics, then functions by name: their order by cost would make a diff of
    rows that did not change."""
    names = list(METRICS)
    return (names.index(row[0]), "") if row[0] in names else (len(names), row[0])


def rows_of(counted: Mapping[str, float]) -> dict[str, float]:
    """The totals, and the largest functions."""
    totals = {name: value for name, value in counted.items() if name in METRICS}
    own = {name: value for name, value in counted.items() if name.startswith("instructions of ")}
    largest = heapq.nlargest(FUNCTIONS, own, key=lambda name: (own[name], name))
    return {**totals, **{name: own[name] for name in largest}}


def growing(command: str, sizes: str, name: str) -> Contract:
    """What is run of a command with a place, and how its row is called.

    :raises ConfigError: where it has no such place, or there are too few sizes.
    """
    return contract(command, f"instructions grow at most n for {name} {sizes}", FILE)


def growing_in(lock: CountLock) -> list[Contract]:
    """What the lock has growth of."""
    named = [(command, _GROWTH.match(name)) for command, own in lock.rows.items() for name in own]
    return list(dict.fromkeys(growing(command, one[2], one[1]) for command, one in named if one))


def growth_of(one: Contract, counted: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The rows of what grows: exponents, by what was counted at each of the sizes."""
    over = one.text.partition(" for ")[2]
    return {
        f"growth of {name} for {over}": exponent(one.sizes, [own.get(name, 0.0) for own in counted])
        for name in METRICS
        if counted[0].get(name)
    }


def toolchain(repo: Repository, commands: Sequence[str]) -> str:
    """What counts depend on besides the program: the compiler that its binary names, the C library, the
    kind of the processor, which the library chooses functions by."""
    described = machine.describe()
    environ = environment(repo)
    compilers = set[str]()
    for command in commands:
        try:
            program = find_executable(shlex.split(command)[0], repo.working_root, environ)
            compilers |= _compilers(Path(program))
        except (ConfigError, OSError, Damaged, ValueError, IndexError):
            continue
    cpu = described.get("cpu", {}).get("model", "")
    parts = (*sorted(compilers), described.get("libc", ""), described.get("architecture", ""), cpu)
    return ", ".join(part for part in parts if part)


def _compilers(program: Path) -> set[str]:
    with open(program, "rb") as file:
        binary = ElfFile(file)
        section = binary.section(".comment")
        text = binary.content(section) if section is not None else b""
    return {part.decode("utf-8", "replace") for part in text.split(b"\0") if part}


class LockedRow(NamedTuple):
    """A row of both: what was counted before, and now."""

    command: str
    name: str
    before: float
    now: float


def differing(before: CountLock, now: CountLock, tolerance: float) -> Iterator[tuple[LockedRow, Keeping]]:
    """The rows that grew or fell by more than the tolerance, and those that only one of them has; of another
    toolchain those of growth alone.

    :param tolerance: a share, 0.001 for 0.1 %.
    """
    alike = before.toolchain in ("", now.toolchain)
    for command in dict.fromkeys((*before.rows, *now.rows)):
        old, new = before.rows.get(command, {}), now.rows.get(command, {})
        for name in dict.fromkeys((*old, *new)):
            row = LockedRow(command, name, old.get(name, 0.0), new.get(name, 0.0))
            is_growth = _GROWTH.match(name)
            if not (is_growth or alike):
                continue
            unit = METRICS[name].unit if name in METRICS else ""
            if abs(row.now - row.before) > (ROOM if is_growth else tolerance * row.before):
                yield row, grown(*row[2:]) if is_growth else like_before(*row[2:], tolerance, unit)


def merged(base: CountLock, ours: CountLock, theirs: CountLock) -> tuple[CountLock, list[tuple[str, str]]]:
    """The lock with what each side changed, and the rows that both changed otherwise: these are as ours, and
    have to be measured."""
    apart: list[tuple[str, str]] = []

    def side(command: str, name: str, *values: Any) -> Any:
        old, own, other = values
        if other not in (own, old) and own != old:
            apart.append((command, name))
        return other if own == old else own

    toolchain = side(TOOLCHAIN, "", base.toolchain, ours.toolchain, theirs.toolchain)
    rows: dict[str, dict[str, float]] = {}
    every = (base.rows, ours.rows, theirs.rows)
    for command, name in dict.fromkeys((one, row) for lock in every for one in lock for row in lock[one]):
        value = side(command, name, *(lock.get(command, {}).get(name) for lock in every))
        if value is not None:
            rows.setdefault(command, {})[name] = value
    return CountLock(toolchain, rows), apart
