"""What a campaign tells while it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from perun.fuzz.corpus import Member
from perun.fuzz.results import Confirmation


class Began(NamedTuple):
    """The seeds have run.

    :param base: executed lines, or edges, as :param unit: says. :param notes: what the user should know.
    """

    base: int
    seeds: int
    rules: int
    limit: int
    notes: tuple[str, ...]
    unit: str = "lines"


class Found(NamedTuple):
    """An input that executes more lines than any before, or a new fault or hang.

    :param kind: one of :data:`perun.fuzz.results.KINDS`.
    """

    kind: str
    member: Member
    seconds: float


class Tested(NamedTuple):
    """What measuring an input said of it.

    :param outcome: `ok`, `fault` or `hang`. :param ending: in words, where it is not `ok`.
    :param confirmation: None where it is not `ok`.
    """

    outcome: str
    confirmation: Confirmation | None = None
    ending: str = ""


class Status(NamedTuple):
    """Where the campaign stands.

    :param phase: what it does now. :param seconds: so far, and :param left: until its time is over; None
        where it ends by executions. :param per_second: executions, of late.
    :param edges: lines or edges that some input has executed. :param ratio: the best, to the seeds.
    :param waiting: inputs that were stopped early, and wait for their time. :param rules: the best ones, as
        `T.10 41`.
    """

    phase: str
    seconds: float
    left: float | None
    executions: int
    per_second: float
    corpus: int
    edges: int
    ratio: float
    results: int
    hangs: int
    faults: int
    waiting: int
    rules: tuple[str, ...]


Event = Began | Found | Status
Test = Callable[[Member, Member, float], Tested]
"""Measures a member beside its seed, within about so many seconds."""
