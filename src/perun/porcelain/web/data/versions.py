"""Pieces of versions: the project, its history, commits and their values."""

from __future__ import annotations

from msgspec import Struct

from perun.porcelain.web.data.common import Named, Number, Numbers


class Running(Struct, frozen=True):
    """What is measured at the moment. :ivar done: and :ivar total: jobs."""

    title: str
    done: int
    total: int
    seconds_left: int | None = None


class Site(Struct, frozen=True):
    """The piece `site`, which each page loads first.

    :ivar chunk: versions of one piece `commits/K` or `values/K`. :ivar piece: of one piece `series/ID/K`.
    :ivar state: another one whenever anything is stored. :ivar hint: what to run where nothing is to be seen.
    :ivar explained: positions of versions of which there is a piece `explained/CHECKSUM`.
    """

    project: str
    branch: str
    head: str | None
    generated: int
    state: str
    commits: int
    measured: int
    profiles: int
    pending: int
    series: int
    chunk: int
    piece: int
    can_acknowledge: bool
    feed: bool
    machines: list[str]
    branches: list[Named]
    tags: list[Named]
    problems: list[str]
    running: Running | None
    hint: str
    explained: list[int]
    schema: str = "perun.web.site/1"


class History(Struct, frozen=True):
    """The piece `history`: all versions in short.

    :ivar checksums: the first eight digits of each, joined. :ivar dates: the first, and the differences.
    :ivar line: the branch of each. :ivar measured: a character for each: `1` has profiles, `.` has none.
    """

    checksums: str
    dates: list[int]
    line: list[int]
    measured: str
    schema: str = "perun.web.history/1"


class Profile(Struct, frozen=True):
    """A registered profile. :ivar views: names of views that can show it as a page, where one is served."""

    id: str
    name: str
    collector: str
    command: str
    workload: str
    time: int
    incomplete: str | None
    machine: int | None
    views: list[str]


class Checked(Struct, frozen=True):
    """A change that `perun check` found, in its words."""

    result: str
    location: str
    before: str
    after: str
    rate: Number
    baseline: str
    command: str


class Commit(Struct, frozen=True):
    """A version. :ivar parents: positions, null of one that is not known."""

    checksum: str
    date: int
    author: str
    subject: str
    parents: list[int | None]
    tags: list[str]
    branch: int
    profiles: list[Profile]
    checks: list[Checked]
    damaged: str


class Commits(Struct, frozen=True):
    """The piece `commits/K`. :ivar first: the position of the first of them."""

    first: int
    commits: list[Commit]
    schema: str = "perun.web.commits/1"


class Values(Struct, frozen=True):
    """The piece `values/K`: what the versions of a chunk measured.

    :ivar series: ids, with :ivar machine: of each; :ivar value: and :ivar half: a row for each of them.
    """

    first: int
    series: list[str]
    machine: list[int | None]
    value: list[Numbers]
    half: list[list[int | None] | None]
    schema: str = "perun.web.values/1"


class Message(Struct, frozen=True):
    """The piece `message/CHECKSUM`: the whole message of a version."""

    text: str
    schema: str = "perun.web.message/1"
