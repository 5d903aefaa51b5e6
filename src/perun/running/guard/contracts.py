"""The file of contracts, and their grammar.

./parse {depth}:
  - instructions grow at most n^1.1 for depth 100..1600
  - allocations at most 3 n + 200 for depth 100..1600
./parse 400:
  - peak memory at most 40 MB
  - instructions of read_value at most 2 M
  - instructions at most +2 % of the lock
  - time at most +5 % of HEAD~1 within 30 s
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from perun.core.config.reader import parse
from perun.core.errors import ConfigError
from perun.core.regular import read_regular
from perun.measurement.contract import MIN_SIZES, GrowthLimit
from perun.profile.amounts import SIZES

FILE: Final = "perun-guard.yml"
LARGEST: Final = 1 << 20
"""Bytes of a file of contracts."""
HINT: Final = "write e.g. `instructions grow at most n^1.1 for n 100..1600`, see docs/guard.md"


class CountedMetric(NamedTuple):
    """What is counted. :param collector: that counts it. :param subtype: of its resources, of the whole
    program. :param unit: of it."""

    collector: str
    type: str
    subtype: str
    unit: str


METRICS: Final[Mapping[str, CountedMetric]] = {
    "instructions": CountedMetric("instructions", "instructions", "inclusive", ""),
    "allocations": CountedMetric("memory", "memory", "allocations", ""),
    "allocated memory": CountedMetric("memory", "memory", "allocated", "B"),
    "peak memory": CountedMetric("memory", "memory", "peak", "B"),
}
"""By their names in contracts."""
TIMES: Final[Mapping[str, str]] = {"time": "wall", "cpu time": "cpu"}
"""Metrics of `perun compare`, by the names that contracts have for them."""
_CONTRACT: Final = re.compile(
    rf"(?P<metric>{'|'.join((*METRICS, *TIMES))})(?: of (?P<function>\S+))? +"
    r"(?P<kind>grows? at most|at most) +(?P<limit>.+?)(?: +for +(?P<name>\w+) +(?P<sizes>\S.*))?"
)
_OF_LOCK: Final = re.compile(r"\+? *(\d+(?:\.\d+)?) *% of the lock")
_OF_VERSION: Final = re.compile(
    r"\+? *(?P<percent>\d+(?:\.\d+)?) *% of (?P<version>\S+)"
    r"(?: within (?P<time>\d+(?:\.\d+)?) *(?P<unit>s|min))?"
)
_RANGE: Final = re.compile(r"(\d+)\.\.(\d+)")
_POWER: Final = re.compile(r"\w+\^(\d+(?:\.\d+)?)")
_UNITS: Final = {**SIZES, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
_TERM: Final = re.compile(
    r"(?P<number>\d+(?:[.,]\d+)*)? *(?P<unit>[kMG]?i?B|[kMG])? *\*? *"
    r"(?P<form>log n|n log n|n\^\d+(?:\.\d+)?|n)?"
)
_MOST_SIZES: Final = 100


@dataclass(frozen=True)
class CountBound:
    """A sum of terms of n. :ivar terms: factors, by their forms: empty for a constant."""

    terms: tuple[tuple[float, str], ...]

    def __call__(self, n: float) -> float:
        """Its value at a size; 0 for n where nothing depends on it."""
        return math.fsum(factor * _form(form, n) for factor, form in self.terms)

    @property
    def grows(self) -> bool:
        """Whether it depends on n."""
        return any(form for _, form in self.terms)


class LockedShare(NamedTuple):
    """At most so much more than in the lock, 0.02 for 2 %."""

    share: float


class PairedShare(NamedTuple):
    """At most so much more than another version takes. :param seconds: for measuring both; None for the
    budget that `perun compare` has by default."""

    share: float
    version: str
    seconds: float | None = None


@dataclass(frozen=True)
class Contract:
    """One line.

    :ivar command: with a placeholder where there are sizes. :ivar function: of which alone; empty for all.
    :ivar place: the file and the line.
    """

    command: str
    text: str
    metric: str
    limit: GrowthLimit | CountBound | LockedShare | PairedShare
    function: str = ""
    parameter: str = ""
    sizes: tuple[int, ...] = ()
    place: str = ""

    def commands(self) -> list[str]:
        """What is run, for each of the sizes."""
        if not self.parameter:
            return [self.command]
        return [self.command.replace(f"{{{self.parameter}}}", str(size)) for size in self.sizes]


def read(path: Path) -> list[Contract]:
    """The contracts of a file.

    :raises ConfigError: names the file and line of what cannot be understood.
    """
    text = text_of(path, LARGEST)
    if text is None:
        raise ConfigError(f"there is no {path.name} in {path.parent}", "make one with: perun guard init")
    root = parse(text, str(path))
    if root is None or root.value == "":
        return []
    if not isinstance(root.value, dict):
        raise ConfigError(f"{path}: it is no mapping of commands to contracts", HINT)
    found = []
    for command, entry in root.value.items():
        lines = entry.value.value if isinstance(entry.value.value, list) else [entry.value]
        for line in lines:
            if not isinstance(line.value, str):
                raise ConfigError(f"{path}: {command}: a contract is a line of text", HINT)
            number = getattr(line.value, "line", entry.key.line)
            found.append(contract(str(command), str(line.value), f"{path.name}:{number}"))
    return found


def text_of(path: Path, most: int) -> str | None:
    """The text of a file that is committed, this one or the lock; None where there is none.

    :param most: bytes that it may have.
    :raises ConfigError: where it cannot be read.
    """
    try:
        return read_regular(path, most).decode()
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise ConfigError(f"cannot read {path}: {problem.strerror}") from None
    except UnicodeDecodeError as problem:
        raise ConfigError(f"cannot read {path}: byte {problem.start} is no UTF-8") from None


def contract(command: str, text: str, place: str = "") -> Contract:
    """What the line says of the command.

    :raises ConfigError: where it cannot be understood.
    """
    words = " ".join(text.split())
    where = f"{place}: " if place else ""
    if not command.strip():
        raise ConfigError(f"{where}there is no command", "write e.g. `./prog 100: instructions at most 2 M`")
    found = _CONTRACT.fullmatch(words)
    if found is None:
        raise ConfigError(f"{where}{words!r} is no contract", f"{HINT}; counted are {', '.join(METRICS)}")
    if found["metric"] in TIMES:
        return Contract(command, words, found["metric"], _paired(command, found, where), place=place)
    name, sizes = found["name"] or "", tuple[int, ...]()
    if name:
        sizes = _sizes(found["sizes"], where)
        if f"{{{name}}}" not in command:
            raise ConfigError(
                f"{where}{command!r} has no place {{{name}}} for the sizes", f"write {{{name}}}"
            )
    placeholder = re.search(r"\{(\w+)\}", command)
    if placeholder and placeholder[1] != name:
        raise ConfigError(
            f"{where}{words!r} does not say which sizes {placeholder[0]} takes",
            f"add e.g. `for {placeholder[1]} 100..1600`",
        )
    made = _limit(found["kind"], found["limit"], name, where)
    if isinstance(made, GrowthLimit) and len(sizes) < MIN_SIZES:
        raise ConfigError(f"{where}growth needs {MIN_SIZES} sizes", "add e.g. `for n 100..1600`")
    if isinstance(made, CountBound) and made.grows and not sizes:
        raise ConfigError(f"{where}{words!r} does not say what n is", "add e.g. `for n 100..1600`")
    return Contract(command, words, found["metric"], made, found["function"] or "", name, sizes, place)


def _limit(kind: str, text: str, name: str, where: str) -> GrowthLimit | CountBound | LockedShare:
    own = re.sub(rf"\b{re.escape(name)}\b", "n", text) if name else text
    if kind != "at most":
        power = _POWER.fullmatch(own)
        if power is not None:
            return GrowthLimit(text, float(power[1]))
        if own not in ("1", "log n", "n", "n log n"):
            raise ConfigError(
                f"{where}{text!r} is no order of growth", "write 1, log n, n, n log n, or n^1.5"
            )
        return GrowthLimit(own)
    if locked := _OF_LOCK.fullmatch(own):
        return LockedShare(float(locked[1]) / 100)
    terms = []
    for term in own.split("+"):
        found = _TERM.fullmatch(term.strip())
        if found is None or not (found["number"] or found["form"]):
            raise ConfigError(
                f"{where}{text!r} is no bound", "write e.g. `40 MB`, `3 n + 200` or `2 n log n`"
            )
        number = float(found["number"].replace(",", "")) if found["number"] else 1.0
        terms.append((number * _UNITS[found["unit"] or ""], found["form"] or ""))
    return CountBound(tuple(terms))


def _paired(command: str, found: re.Match[str], where: str) -> PairedShare:
    """What bounds a time.

    :raises ConfigError: where that is not another version, or it is not the time of one whole command.
    """
    form = f"write e.g. `{found['metric']} at most +5 % of HEAD~1 within 30 s`"
    pair = _OF_VERSION.fullmatch(found["limit"]) if found["kind"] == "at most" else None
    if pair is None:
        raise ConfigError(
            f"{where}{found[0]!r} bounds a time by itself: it depends on the machine and its load, "
            "so that only pairs of runs with another version tell something",
            f"{form}, or bound instructions; the lock has no times",
        )
    if found["function"]:
        raise ConfigError(
            f"{where}times are those of whole commands, not of {found['function']!r}",
            f"{form}, or bound `instructions of {found['function']}`",
        )
    if found["name"] or re.search(r"\{\w+\}", command):
        raise ConfigError(
            f"{where}{command!r} has sizes, but times are compared of one command",
            "write a command for each size, or bound instructions",
        )
    share, seconds = float(pair["percent"]) / 100, float(pair["time"]) if pair["time"] else None
    if not share > 0 or seconds == 0:
        what = "within no time nothing is measured" if share else "times always differ by more than 0 %"
        raise ConfigError(f"{where}{found[0]!r}: {what}", form)
    if seconds is not None and pair["unit"] == "min":
        seconds *= 60
    return PairedShare(share, pair["version"], seconds)


def _sizes(text: str, where: str) -> tuple[int, ...]:
    """`100..1600`, as five sizes with one ratio, or `100, 200, 400`.

    :raises ConfigError: where they are neither, or do not ascend.
    """
    between = _RANGE.fullmatch(text)
    if between is not None:
        low, high = int(between[1]), int(between[2])
        ratio = (high / max(low, 1)) ** (1 / (MIN_SIZES - 1))
        sizes = tuple(round(low * ratio**number) for number in range(MIN_SIZES))
    else:
        words = [word.strip() for word in text.split(",")]
        if not all(word.isdecimal() for word in words):
            raise ConfigError(
                f"{where}{text!r} are no sizes", "write e.g. 100..1600, or 100, 200, 400, 800, 1600"
            )
        sizes = tuple(map(int, words))
    if not sizes[0] > 0 or list(sizes) != sorted(set(sizes)) or len(sizes) > _MOST_SIZES:
        raise ConfigError(f"{where}the sizes {text} do not ascend from 1 or more", "write e.g. 100..1600")
    return sizes


def _form(form: str, n: float) -> float:
    if form.startswith("n^"):
        return float(n ** float(form[2:]))
    log = math.log(n) if n > 0 else 0.0
    return {"": 1.0, "n": n, "log n": log, "n log n": n * log}[form]


def commands_in(contracts: Sequence[Contract]) -> list[str]:
    """All that they run."""
    return [command for one in contracts for command in one.commands()]
