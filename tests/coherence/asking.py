"""What commands say of a history, in one form: by series and version the value and the verdict on it."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from histories import History, profile_of
from perun.cli.main import _invoke
from perun.cli.session import Session
from perun.core.machine import class_of
from perun.measurement.headline import headline


class Key(NamedTuple):
    """A headline series at a version. :param machine: its class; empty of what is counted."""

    version: str
    collector: str
    cmd: str
    args: str
    workload: str
    machine: str


class Said(NamedTuple):
    """What is said of it, where the command tells that: None elsewhere. :param since: the version before."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    size: int | None = None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    verdict: str | None = None
    reason: str | None = None
    limit: float | None = None
    confirmed: bool | None = None
    since: str | None = None


Answers = dict[Key, Said]


@dataclass(frozen=True, eq=False)
class Asked:
    """A stored history. :param checksums: of its versions, by place. :param environ: of the commands."""

    folder: Path
    history: History
    checksums: Sequence[str]
    environ: Mapping[str, str]
    metrics: dict[Key, str] = field(default_factory=dict)

    def perun(self, *arguments: str, code: int = 0) -> str:
        """Standard output of a command, which runs in this process."""
        out, err = io.StringIO(), io.StringIO()
        with chdir(self.folder), redirect_stdout(out), redirect_stderr(err):
            found = _invoke(Session(dict(self.environ), self.folder), list(arguments))
        assert found == code, f"perun {' '.join(arguments)} ended with {found}: {err.getvalue()}"
        return out.getvalue()

    def json(self, *arguments: str) -> Any:
        return json.loads(self.perun(*arguments, "--json"))

    @cached_property
    def first_parents(self) -> list[str]:
        """The versions along first parents, the newest first."""
        line, place = [], len(self.checksums) - 1
        while True:
            line.append(self.checksums[place])
            if not self.history.parents[place]:
                return line
            place = self.history.parents[place][0]

    def machine(self, source: str) -> str:
        """The class of machines that a profile with this file name is of."""
        made = self.history.profiles[int(source.removesuffix(".perf"))]
        if self.history.benchmarks[made.benchmark].kind in ("memory", "instructions"):
            return ""
        return class_of(profile_of(self.history, made)["machine"])

    def location(self, key: Key) -> str:
        """What stands for the profiles of the series."""
        for made in self.history.profiles:
            one = self.history.benchmarks[made.benchmark]
            if (one.cmd, one.args, one.workload) == key[2:5]:
                profile = profile_of(self.history, made)
                if profile["collector_info"]["name"] == key.collector:
                    found = headline(profile)
                    assert found is not None
                    limited = self.metrics.get(key) == "cpu time"
                    return found.location.replace("[real]", "[cpu]") if limited else found.location
        raise KeyError(key)


class Store(Protocol):
    """Stores a history in a repository of its own, with these settings."""

    def __call__(self, history: History, *, settings: Mapping[str, str] = ...) -> Asked: ...


Hold = Callable[[History, Callable[["Asked"], list[str]]], None]


def _configuration(one: Mapping[str, Any]) -> tuple[str, str, str, str]:
    return one["collector"], one["cmd"], one["args"], one["workload"]


def _said(measured: Mapping[str, Any], difference: Mapping[str, Any] | None) -> Said:
    value = measured["value"], measured["low"], measured["high"], measured["n"]
    if difference is None:
        return Said(*value)
    names = ("ratio", "ratio_low", "ratio_high", "verdict", "reason", "limit", "confirmed", "since")
    return Said(*value, *(difference[name] for name in names))


def log(asked: Asked, *arguments: str) -> Answers:
    found = {}
    for version in asked.json("log", *arguments)["versions"]:
        for one in version["values"]:
            key = Key(version["checksum"], *_configuration(one), one["machine"])
            asked.metrics[key] = one["measured"]["metric"]
            found[key] = _said(one["measured"], one["difference"])
    return found


def trend(asked: Asked, *arguments: str) -> Answers:
    return {
        Key(point["version"], *_configuration(series), series["machine"]): _said(
            point["measured"], point["difference"]
        )
        for series in asked.json("trend", *arguments)["series"]
        for point in series["points"]
    }


def status(asked: Asked, versions: Sequence[str]) -> Answers:
    found: Answers = {}
    for version in versions:
        for one in asked.json("status", version)["registered"]:
            if one["measured"] is not None:
                key = Key(version, *_configuration(one), asked.machine(one["name"]))
                said = _said(one["measured"], one["difference"])
                assert found.setdefault(key, said) == said
    return found


def check(asked: Asked, *arguments: str, like: str = "") -> Answers:
    """What `perun check` says of the headlines; of a pair that does not compare, that it is Unknown.

    :param like: the version whose headlines are looked for; each version's own without it.
    """
    found: Answers = {}
    answer = json.loads(asked.perun("-v", "check", *arguments, "--json"))
    for one in answer["comparisons"]:
        key = Key(one["minor_version"], *_configuration(one), asked.machine(one["target_profile"]))
        if one["environment"] or one["reason"]:
            found[key] = Said(verdict="Unknown" if one["environment"] else "", since=one["baseline"])
            continue
        location = asked.location(key._replace(version=like or key.version))
        own = [change for change in one["changes"] if change["location"] == location]
        for change in own:
            found[key] = _of_change(change, one["baseline"])
        if not own:
            found[key] = Said(verdict="", since=one["baseline"])
    return found


def _of_change(change: Mapping[str, Any], since: str) -> Said:
    size = change["sizes"][1] if change["sizes"] else None
    value = change["to_value"]["value"] if change["to_value"] else None
    names = ("ratio", "ratio_low", "ratio_high", "verdict", "reason", "limit", "confirmed")
    told = (change[name] for name in names)
    return Said(value, None, None, size, *told, since)


def close(one: float | None, other: float | None) -> bool:
    """Whether two numbers are the same but for the order of additions."""
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


def contradictions(name: str, one: Answers, other: Answers, *, every: bool = True) -> list[str]:
    """What two commands say differently. :param every: also of keys that only the first has."""
    found = []
    for key, said in one.items():
        if key not in other:
            if every:
                found.append(f"{name}: {key} is only in the first: {said}")
            continue
        for name_of in Said._fields:
            left, right = getattr(said, name_of), getattr(other[key], name_of)
            floats = isinstance(left, float) and isinstance(right, float)
            if not (close(left, right) if floats else left == right):
                found.append(f"{name}: {key}: {name_of} is {left} and {right}")
    return found
