"""The pieces that pages are made of, as JSON has them: a key for each field, null for None.

Times are seconds since 1970. A *position* is the place of a version among all that are known, the oldest 0.
Numbers have six digits, texts are those of the commands. The form of each piece is `perun.web.NAME/N`: keys
may be added to it.
"""

from __future__ import annotations

from msgspec import Struct

Number = float | int | None
Numbers = list[Number]


class Ref(Struct, frozen=True):
    """A version. :ivar at: its position; -1 of one that is not known."""

    at: int
    checksum: str
    date: int
    author: str
    subject: str


class Named(Struct, frozen=True):
    """A branch or a tag, and the position of its version."""

    name: str
    at: int


class Series(Struct, frozen=True):
    """A series in a list. :ivar spark: at most 40 medians along the main line.

    :ivar interval: of the newest value, :ivar text: with it.
    :ivar name: the shortest one that tells it apart from all others.
    """

    id: str
    title: str
    location: str
    command: str
    collector: str
    metric: str
    unit: str
    exact: bool
    larger_is_better: bool
    latest: Number
    latest_at: int | None
    interval: Numbers | None
    changes: int
    spark: Numbers
    name: str
    text: str


class SeriesList(Struct, frozen=True):
    """The piece `series`: all of them, the most important ones first. :ivar more: how many are left out."""

    series: list[Series]
    more: int
    schema: str = "perun.web.series/1"


class Configuration(Struct, frozen=True):
    """What was measured and how."""

    collector: str
    cmd: str
    args: str
    workload: str
    postprocessors: list[str]


class Line(Struct, frozen=True):
    """The points of a series on one machine and one branch.

    :ivar at: the first position, then differences. :ivar half: half the width of each interval at 95 %,
    in millionths of the value; of 0 as it is. :ivar n: samples; one number where all have the same.
    """

    machine: int | None
    branch: int
    at: list[int]
    value: Numbers
    half: Numbers | None
    n: list[int] | int


class Level(Struct, frozen=True):
    """The level of a series between two changes. :ivar versions: that it is known of."""

    value: Number
    interval: Numbers
    versions: int


class Acknowledged(Struct, frozen=True):
    """What acknowledges a change."""

    until: str | None
    because: str | None


class Around(Struct, frozen=True):
    """The values around a change. :ivar change: the place of the first one after it."""

    value: Numbers
    change: int


class Change(Struct, frozen=True):
    """A change of the level of one series.

    :ivar version: the first measured one of the new level, :ivar since: the last one of the old.
    :ivar possible: how many versions may have brought it. :ivar result: as `perun check` calls it.
    :ivar report: whether there is a piece `compare/SINCE..VERSION` of it. :ivar decides: whether it is
        definite.
    :ivar word: and :ivar text: the result and the ratio with its interval, :ivar sides: the old and the new
    value, all as `perun changes` writes them. :ivar name: of the series.
    """

    version: Ref
    since: Ref
    possible: int
    series: str
    title: str
    location: str
    command: str
    machine: int | None
    unit: str
    exact: bool
    degradation: bool
    result: str
    ratio: Number
    interval: Numbers
    before: Level
    after: Level
    acknowledged: Acknowledged | None
    taken_back: str
    takes_back: str
    moved_with: list[str]
    conditions: list[str]
    remark: str
    report: bool
    spark: Around | None
    decides: bool
    word: str
    text: str
    sides: list[str]
    name: str


class ChangeList(Struct, frozen=True):
    """The piece `changes`: the newest first. :ivar total: of them, of which the newest ones are here.

    :ivar doubtful: the newest ones that are not definite, of series that stand for what was measured.
    """

    changes: list[Change]
    total: int
    doubtful: list[Change]
    schema: str = "perun.web.changes/1"


class SeriesPage(Struct, frozen=True):
    """The piece `series/ID`. :ivar lines: their points from position `tail` on; those before are in `chunks`,
    the pieces `series/ID/K`. :ivar related: ids of series of the same command."""

    series: Series
    configuration: Configuration
    lines: list[Line]
    tail: int
    chunks: list[int]
    changes: list[Change]
    related: list[str]
    schema: str = "perun.web.series_page/2"


class Points(Struct, frozen=True):
    """The piece `series/ID/K`."""

    lines: list[Line]
    schema: str = "perun.web.points/2"


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
    """A change that `perun check` found, in its words. :ivar word: the result as it is written."""

    result: str
    location: str
    before: str
    after: str
    rate: Number
    baseline: str
    command: str
    word: str


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
    half: list[Numbers | None]
    schema: str = "perun.web.values/2"


class Message(Struct, frozen=True):
    """The piece `message/CHECKSUM`: the whole message of a version."""

    text: str
    schema: str = "perun.web.message/1"


class Side(Struct, frozen=True):
    """What one side measured of something. :ivar n: samples.

    :ivar text: the value, in the unit of the other side. :ivar whole: the value with its interval.
    """

    value: Number
    interval: Numbers | None
    n: int
    text: str
    whole: str


class Compared(Struct, frozen=True):
    """What of two versions compares. :ivar result: as `perun check` calls it, with its reason; empty where
    it tells nothing of it. :ivar word: the result, and :ivar text: the ratio with its interval, as it
    writes them."""

    location: str
    metric: str
    unit: str
    exact: bool
    larger_is_better: bool
    series: str | None
    a: Side | None
    b: Side | None
    ratio: Number
    interval: Numbers | None
    result: str
    reason: str
    word: str
    text: str


class Sample(Struct, frozen=True):
    """The single values of both sides."""

    name: str
    unit: str
    a: Numbers
    b: Numbers


class Model(Struct, frozen=True):
    """How the cost of a function grows on both sides, as formulas."""

    name: str
    a: str
    b: str


class Case(Struct, frozen=True):
    """What of one configuration compares. :ivar flame: the address of a differential flame graph."""

    title: str
    rows: list[Compared]
    samples: list[Sample]
    models: list[Model]
    flame: str | None


class Comparison(Struct, frozen=True):
    """The piece `compare/A..B`."""

    a: Ref
    b: Ref
    notes: list[str]
    cases: list[Case]
    schema: str = "perun.web.compare/1"


class Cost(Struct, frozen=True):
    """What a function, or the program, costs by one metric before and after. :ivar share: how much more that
    is, as a part of what the program cost; the interval is that of the ratio. :ivar text: all of it;
    :ivar of_whole: the share."""

    metric: str
    unit: str
    before: Number
    after: Number
    ratio: Number
    interval: Numbers | None
    share: Number
    text: str
    of_whole: str


class DiffLine(Struct, frozen=True):
    """A line of a diff. :ivar mark: `+`, `-` or a blank. :ivar old: and :ivar new: its numbers, 0 where it is
    not there."""

    mark: str
    old: int
    new: int
    text: str


class Diff(Struct, frozen=True):
    """Lines of one place. :ivar more: how many are left out."""

    place: str
    lines: list[DiffLine]
    more: int


class Reason(Struct, frozen=True):
    """A function whose cost changed. :ivar growth: how its cost grows before and after, as formulas."""

    location: str
    sentence: str
    worse: bool
    costs: list[Cost]
    growth: list[str] | None
    diffs: list[Diff]


class Reasons(Struct, frozen=True):
    """What was found of one command. :ivar smaller: functions that changed by less than is told.

    :ivar unseen: what could not be seen, and why.
    """

    title: str
    totals: list[Cost]
    functions: list[Reason]
    more: int
    smaller: int
    unseen: list[str]


class Explained(Struct, frozen=True):
    """The piece `explained/CHECKSUM`: why the version costs what it does, as `perun explain` found it.

    :ivar others: files of the diff that no function of it is in, as text.
    """

    a: Ref
    b: Ref
    notes: list[str]
    cases: list[Reasons]
    others: list[str]
    schema: str = "perun.web.explained/1"


class Tag(Struct, frozen=True):
    """The tag that a verdict is since."""

    name: str
    at: int
    date: int


class Verdict(Struct, frozen=True):
    """What became of the project. :ivar kind: `worse`, `better`, `same` or `unknown`.

    :ivar worse: (and better, same, unknown) numbers of benchmarks; :ivar acknowledged: of those that got
        worse.
    :ivar changes: how many definite changes no other one takes back, as `perun changes` lists them.
    :ivar doubtful: how many there may be besides. :ivar decides: the command that decides most of these.
    """

    kind: str
    sentence: str
    details: str
    tag: Tag | None
    worse: int
    better: int
    same: int
    unknown: int
    acknowledged: int
    changes: int
    doubtful: int
    decides: str


class Row(Struct, frozen=True):
    """A row of a heat map: the values of a series on one machine."""

    series: str
    title: str
    unit: str
    larger_is_better: bool
    machine: int | None
    value: Numbers
    command: str
    name: str


class Heat(Struct, frozen=True):
    """The newest measured versions, and what of them is drawn."""

    commits: list[Ref]
    rows: list[Row]


class Member(Struct, frozen=True):
    """The headline of one command and workload, on one machine.

    :ivar state: as `kind` of the verdict. :ivar change: the largest change that is left of it.
    :ivar spark_at: positions of the places of its spark. :ivar parts: ids of the other series of the command.
    """

    series: Series
    machine: int | None
    state: str
    change: Change | None
    spark: Numbers
    spark_at: list[int]
    parts: list[str]


class Benchmark(Struct, frozen=True):
    """A line of the overview: a command by its headline, the worst of its workloads first.

    :ivar group: of a benchmark of a suite, what its name begins with: the package, or the file; else empty.
    """

    name: str
    metric: str
    members: list[Member]
    group: str = ""


class GateMonth(Struct, frozen=True):
    """A month of the record: of the degradations of benchmarks that a gate fails on, how many its commits
    brought, and how many of these are acknowledged, or taken back by a later commit."""

    month: str
    alerts: int
    acknowledged: int
    taken_back: int


class Overview(Struct, frozen=True):
    """The piece `overview`. :ivar total: changes; :ivar more: benchmarks that are left out. :ivar record: the
    newest months with alerts, the newest first."""

    verdict: Verdict
    changes: list[Change]
    total: int
    heat: Heat
    benchmarks: list[Benchmark]
    more: int
    record: list[GateMonth]
    schema: str = "perun.web.overview/2"


class Grid(Struct, frozen=True):
    """The piece `grid`. :ivar at: the position of the first version of each column."""

    at: list[int]
    rows: list[Row]
    more: int
    schema: str = "perun.web.grid/1"


class Covered(Struct, frozen=True):
    """A configuration. :ivar cells: a character for each version of the main line: `1` measured, `.` not, `i`
    incomplete, `d` damaged."""

    title: str
    collector: str
    command: str
    workload: str
    machine: int | None
    cells: str


class Missing(Struct, frozen=True):
    """How many versions a configuration was not measured in. :ivar command: what measures them."""

    title: str
    machine: int | None
    count: int
    command: str


class Fuzzed(Struct, frozen=True):
    """A workload that `perun fuzz --keep` keeps. :ivar size: bytes.

    :ivar titles: of the configurations that are measured with it. :ivar measured: in how many versions of the
        main line, at most.
    """

    name: str
    size: int
    date: int
    titles: list[str]
    measured: int


class Coverage(Struct, frozen=True):
    """The piece `coverage`. :ivar at: positions of the versions of the main line, as differences."""

    rows: list[Covered]
    at: list[int]
    missing: list[Missing]
    fuzzed: list[Fuzzed]
    schema: str = "perun.web.coverage/1"


AnyPiece = (
    Site
    | History
    | Commits
    | SeriesList
    | ChangeList
    | SeriesPage
    | Points
    | Overview
    | Values
    | Grid
    | Coverage
    | Comparison
    | Explained
    | Message
)
