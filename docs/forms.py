"""The forms of the JSON answers, of which their JSON schema is made: `python docs/forms.py`.

`json.md` says what the keys mean, and each answer that a test of the commands reads must be of its form. That
of `perun.check/1`, with patterns, is in a file of its own.
"""

from __future__ import annotations

import json
from inspect import cleandoc
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_type_hints

import msgspec
from msgspec import Struct

from perun.fuzz.results import Confirmation, Point, Program, Result, Rule, Seed
from perun.running.doctor import Finding as Found
from perun.sharing.gate import Gate as Gate

FILE: Final = Path(__file__).with_name("schemas") / "perun.answers.schema.json"


class Configuration(Struct):
    """What was measured and how."""

    collector: str
    cmd: str
    args: str
    workload: str
    postprocessors: list[str]


class Version(Struct):
    """A version; `date` is that of the commit, in UTC."""

    checksum: str
    date: str
    author: str
    email: str
    desc: str
    parents: list[str]


class VersionRef(Struct):
    """A version in short."""

    version: str
    date: str
    author: str
    subject: str


class Value(Struct):
    """A value with its interval at 95 %, of `n` measurements."""

    metric: str
    value: float
    low: float | None
    high: float | None
    n: int
    unit: str


class Difference(Struct):
    """The difference from the version `since`."""

    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    verdict: str
    reason: str
    decides: bool
    limit: float | None
    confirmed: bool
    since: str
    shares: str | None


class Shares(Struct):
    """The version whose measurement a profile is, as that has the same program and input, and why."""

    minor_version: str
    reason: str


class Acknowledged(Struct):
    """What acknowledges a change."""

    version: str
    location: str
    until: str | None
    because: str | None


class AcknowledgedEntry(Acknowledged):
    """The same, and whether it is over."""

    expired: bool


class KnownStep(Struct):
    """What `perun changes` found of a version when it was last called."""

    location: str
    command: str
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    verdict: str
    headline: bool
    before: float
    after: float
    unit: str
    degradation: bool
    possible: list[str]
    taken_back: str
    takes_back: str
    acknowledged: Acknowledged | None


class Profile(Configuration):
    """A profile in a list."""

    type: str
    tag: str
    id: str
    name: str
    time: float
    checksum: str | None
    other_machine: str | None
    incomplete: str | None
    measured: Value | None
    difference: Difference | None


class Damaged(Struct):
    """A file that cannot be read."""

    name: str
    reason: str


class Status(Struct):
    """`perun status`."""

    schema: Literal["perun.status/2"]
    major_version: str
    minor_version: Version | None
    registered: list[Profile]
    pending: list[Profile]
    damaged: list[Damaged]
    changes: list[dict[str, Any]]
    steps: list[KnownStep]
    bisection: str | None


class LogValue(Configuration):
    """What was measured of a configuration on a class of machines."""

    machine: str
    measured: Value
    difference: Difference | None


class LogVersion(Version):
    """A version with what is stored for it."""

    profiles: dict[str, int]
    optimizations: int
    degradations: int
    damage: str | None
    values: list[LogValue]
    steps: list[KnownStep]


class Log(Struct):
    """`perun log`."""

    schema: Literal["perun.log/2"]
    versions: list[LogVersion]


class TrendPoint(Struct):
    """A version of a series."""

    version: str
    date: str
    subject: str
    measured: Value
    difference: Difference | None


class TrendSeries(Configuration):
    """A series; `difference` is from its first to its last point."""

    machine: str
    metric: str
    unit: str
    larger_is_better: bool
    difference: Difference | None
    points: list[TrendPoint]


class Trend(Struct):
    """`perun trend`."""

    schema: Literal["perun.trend/2"]
    versions: int
    measured: int
    unread: int
    damaged: list[str]
    series: list[TrendSeries]


class SeriesKey(Configuration):
    """What a series is."""

    machine: str
    location: str
    type: str
    subtype: str
    unit: str
    exact: bool
    larger_is_better: bool


class Level(Struct):
    """The value that a series keeps for some versions."""

    value: float
    low: float
    high: float
    n: int
    versions: int


class Step(SeriesKey):
    """A series that a version changed."""

    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    verdict: str
    reason: str
    decides: bool
    headline: bool
    values: list[float]
    degradation: bool
    before: Level
    after: Level
    votes: list[str]
    taken_back: str
    takes_back: str
    moved_with: list[str]
    conditions: list[str]
    acknowledged: Acknowledged | None


class GoneSeries(SeriesKey):
    """A series that went away or came."""

    value: float


class Drift(SeriesKey):
    """A series that moved little by little."""

    ratio: float
    versions: int
    since: str
    headline: bool


class VersionChanges(VersionRef):
    """What changed with a version."""

    since: str
    possible: list[str]
    steps: list[Step]
    gone: list[GoneSeries]
    came: list[GoneSeries]


class Changes(Struct):
    """`perun changes`."""

    schema: Literal["perun.changes/2"]
    versions: int
    measured: int
    series: int
    short: int
    damaged: list[str]
    changes: list[VersionChanges]
    drifts: list[Drift]


class BlamedSeries(SeriesKey):
    """A series of a function with its newest value, which is of that version."""

    value: float
    version: str


class BlamedChange(Step):
    """What a version changed of a series of a function."""

    version: str
    date: str
    author: str
    subject: str
    since: str
    possible: list[str]


class FormerFunction(VersionRef):
    """What a function was before a version; null where it is new."""

    path: str | None
    function: str | None


class BlamedFunction(Struct):
    """A function of the file."""

    function: str
    lines: list[list[int]]
    series: list[BlamedSeries]
    changes: list[BlamedChange]
    former: list[FormerFunction]
    inlined: float | None
    unknown: list[str]


class Blame(Struct):
    """`perun blame`."""

    schema: Literal["perun.blame/1"]
    path: str
    version: str
    versions: int
    measured: int
    damaged: list[str]
    functions: list[BlamedFunction]


class BisectRatio(Struct):
    """The cost of a version by that of another one."""

    value: float | None
    interval: list[float | None] | None
    exact: bool
    before: float | None
    after: float | None
    unit: str
    orders: list[str] | None


class BisectVersion(VersionRef):
    """What was found of a version."""

    like: str
    how: str
    ratio: BisectRatio | None
    against: str
    why: str


class Bisect(Struct):
    """`perun bisect`."""

    schema: Literal["perun.bisect/1"]
    good: str
    bad: str
    what: str
    first: VersionRef | None
    parent: str | None
    merge: str | None
    degradation: bool | None
    ratio: BisectRatio | None
    confirmed: bool
    measured: int
    stored: int
    skipped: int
    why: str
    range: list[VersionRef]
    versions: list[BisectVersion]


class Side(Struct):
    """A side of an explanation."""

    checksum: str
    date: str
    author: str
    subject: str


class Explain(Struct):
    """`perun explain`; the page on JSON has the keys of functions and their costs."""

    schema: Literal["perun.explain/1"]
    base: Side
    head: Side
    stored: int
    notes: list[str]
    configurations: list[dict[str, Any]]
    others: list[dict[str, Any]]


class Ack(Struct):
    """`perun ack`."""

    schema: Literal["perun.ack/1"]
    acknowledged: list[AcknowledgedEntry]


class Job(Struct):
    """What is run; null where a whole version was skipped."""

    cmd: str | None
    args: str | None
    workload: str | None
    collector: str | None
    postprocessors: list[str] | None


class RunProfile(Job):
    """A profile that was stored."""

    name: str
    minor_version: str
    registered: bool
    incomplete: str | None
    seconds: float
    machine: str | None
    measured: Value | None
    difference: Difference | None
    notes: list[str]
    shares: Shares | None


class RunFailure(Job):
    """A job that failed, or a version that was skipped."""

    minor_version: str
    message: str
    hint: str | None


class RunResult(Job):
    """What a session of rounds says of a version and a job, beside the nearest version of it before."""

    minor_version: str
    rounds: int
    registered: bool
    measured: Value | None
    difference: Difference | None


class RunChange(Job):
    """A change that a search of the history has found; `between` counts versions that cannot be measured."""

    since: str
    minor_version: str
    between: int
    measured: Value
    difference: Difference | None


class Run(Struct):
    """`perun collect`, `perun run job` and `perun run matrix`; of a search for changes (`--find-changes`)
    these, and how many pairs of neighbours are undecided."""

    schema: Literal["perun.run/1"]
    interrupted: bool
    profiles: list[RunProfile]
    results: list[RunResult]
    changes: list[RunChange] | None
    undecided: int | None
    failures: list[RunFailure]
    answers: list[dict[str, Any]]


class PlannedJob(Job):
    """A job that would run, and how long it takes."""

    seconds: float | None


class PlannedVersion(Struct):
    """A version that would be measured."""

    minor_version: str
    round: int | None
    skipped: str | None
    jobs: list[PlannedJob]


class Plan(Struct):
    """`perun run matrix --dry-run`."""

    schema: Literal["perun.plan/1"]
    versions: list[PlannedVersion]


class AddedProfile(Struct):
    """A profile that was to be registered."""

    name: str
    minor_version: str
    registered: bool
    refused: bool


class Add(Struct):
    """`perun add`."""

    schema: Literal["perun.add/1"]
    profiles: list[AddedProfile]


class ImportedProfile(Struct):
    """A profile that was imported; `means` of one without samples."""

    name: str
    minor_version: str
    format: str
    file: str
    collector: str
    cmd: str
    args: str
    workload: str
    resources: int
    means: bool


class Import(Struct):
    """`perun import`."""

    schema: Literal["perun.import/1"]
    profiles: list[ImportedProfile]
    notes: list[str]


class RemovedProfile(Struct):
    """A profile that was unlinked or deleted."""

    name: str
    minor_version: str | None


class Rm(Struct):
    """`perun rm`."""

    schema: Literal["perun.rm/1"]
    profiles: list[RemovedProfile]


class Postprocessby(Struct):
    """`perun postprocessby`."""

    schema: Literal["perun.postprocessby/1"]
    name: str
    notes: list[str]


class Benchmark(Struct):
    """A command that was measured."""

    command: str
    cmd: str
    args: str
    workload: str
    parameters: dict[str, str]
    measured: Value
    precision: float | None
    user: float
    system: float
    min: float
    max: float
    spread: float | None
    times: list[float]
    exit_codes: list[int]
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    difference: Difference | None
    notes: list[str]
    profile: str | None
    registered: bool


class Bench(Struct):
    """`perun bench`."""

    schema: Literal["perun.bench/2"]
    minor_version: str
    uncommitted: bool
    environment: list[str]
    interrupted: bool
    benchmarks: list[Benchmark]
    saved: list[str]


class Curve(Struct):
    """A value that only rises during a campaign."""

    points: list[Point]
    quartiles: list[Point]


class Fuzz(Struct):
    """`perun fuzz`."""

    schema: Literal["perun.fuzz/1"]
    folder: str
    interrupted: bool
    notes: list[str]
    format: int
    program: Program
    settings: dict[str, Any]
    random_seed: int
    seeds: list[Seed]
    base: int
    results: list[Result]
    rules: list[Rule]
    coverage: Curve
    degradations: Curve
    executions: int
    iterations: int
    corpus: int
    seconds: float
    threshold: float
    ended: str
    perun: str


class KeptFile(Struct):
    """An input that is a workload now."""

    name: str
    result: str
    kind: str
    is_new: bool


class KeptSetting(Struct):
    """What was added to the job matrix."""

    key: str
    value: Any
    what: str


class FuzzKeep(Struct):
    """`perun fuzz --keep`."""

    schema: Literal["perun.fuzz.keep/1"]
    folder: str
    files: list[KeptFile]
    settings: list[KeptSetting]
    notes: list[str]


class Replayed(Struct):
    """A result that was measured again."""

    file: str
    kind: str
    state: str
    reason: str
    before: Confirmation | None
    now: Confirmation | None
    lines_before: float | None
    lines_now: float | None


class FuzzReplay(Struct):
    """`perun fuzz --replay`."""

    schema: Literal["perun.fuzz.replay/1"]
    version: str
    uncommitted: bool
    results: list[Replayed]
    notes: list[str]


class Remote(Struct):
    """A remote."""

    name: str
    url: str


class Remotes(Struct):
    """`perun remote list`."""

    schema: Literal["perun.remotes/1"]
    remotes: list[Remote]


class Sent(Struct):
    """A registered profile."""

    minor: str
    checksum: str
    time: int
    name: str


class Transfer(Struct):
    """`perun push`, `perun pull` and `perun clone-profiles`."""

    schema: Literal["perun.push/1", "perun.pull/1"]
    remote: str
    dry_run: bool
    profiles: list[Sent]
    known: int
    removed: list[Sent]
    refused: list[str]
    bytes: int
    seconds: float


class FetchedVersion(Struct):
    """A version of which a remote has profiles, or lacks some."""

    version: str
    date: str | None
    subject: str | None
    profiles: list[Sent]
    not_here: int
    not_there: int


class Fetch(Struct):
    """`perun fetch`."""

    schema: Literal["perun.fetch/1"]
    remote: str
    versions: list[FetchedVersion]


class Gc(Struct):
    """`perun gc`."""

    schema: Literal["perun.gc/1"]
    remote: str | None
    dry_run: bool
    profiles: list[Sent]
    deleted: list[str]
    bytes: int
    waiting: int
    moved: int
    unknown: int
    builds: int
    builds_removed: int


class Machine(Struct):
    """A machine of a pool."""

    machine: str
    workers: int
    python: str
    machine_class: str
    seconds: float | None
    drift: float
    set_aside: bool
    problem: str
    busy: str
    others: float
    waited: float


class Pool(Struct):
    """`perun pool check`."""

    schema: Literal["perun.pool/1"]
    pool: str
    machines: list[Machine]
    unfit: int


class Config(Struct):
    """`perun config get`."""

    schema: Literal["perun.config/1"]
    key: str
    value: Any
    source: str | None


class FsckFinding(Struct):
    """What is wrong with what is stored."""

    severity: Literal["error", "warning", "info"]
    path: str
    message: str
    repairable: bool
    repaired: str | None


class Fsck(Struct):
    """`perun fsck`."""

    schema: Literal["perun.fsck/1"]
    errors: int
    findings: list[FsckFinding]


class Condition(Struct):
    """What makes times uncertain."""

    key: str
    message: str
    advice: str
    momentary: bool


class Doctor(Struct):
    """`perun doctor`."""

    schema: Literal["perun.doctor/1"]
    versions: dict[str, str]
    machine: str | None
    speed: Found | None
    conditions: list[Condition]
    project: list[Found]
    collectors: list[Found]
    plugins: list[Found]


class Effect(Struct):
    """What it takes to see a change by a share."""

    share: float
    pairs: int | None
    seconds: float | None


class Clock(Struct):
    """The noise of one clock."""

    name: str
    median: float
    scatter: float
    paired: float
    ratio: float
    interval: list[float | None]
    p_value: float
    halves: float
    smallest: float | None
    effects: list[Effect]


class Noise(Struct):
    """`perun doctor noise`."""

    schema: Literal["perun.noise/1"]
    machine: str | None
    conditions: list[Condition]
    command: str
    pairs: int
    disturbed: int
    pinned: bool
    seconds: float
    confidence: float
    power: float
    clocks: list[Clock]


class NamedHunk(Struct):
    """A hunk, or a whole file, of a commit."""

    number: int
    path: str
    line: int | None


class HunkSearch(Struct):
    """`perun bisect --within`."""

    schema: Literal["perun.within/1"]
    commit: str | None
    what: str
    unit: str
    verdict: str
    before: float
    after: float
    hunks: int
    named: list[NamedHunk]
    without: float | None
    alone: float | None
    certain: bool
    builds: int
    notes: list[str]


class KeptContract(Struct):
    """A contract, and whether it is kept."""

    command: str
    contract: str
    place: str
    kept: bool | None
    reason: str
    error: str | None


class Contracts(Struct):
    """`perun guard check`."""

    schema: Literal["perun.guard/1"]
    contracts: list[KeptContract]


class Toolchain(Struct):
    """With what a lock was written, and what there is now."""

    before: str
    now: str
    same: bool


class LockRow(Struct):
    """A count that differs from the lock."""

    command: str
    name: str
    before: float
    now: float
    kept: bool | None


class LockedCounts(Struct):
    """`perun lock --check`."""

    schema: Literal["perun.lock/1"]
    toolchain: Toolchain
    rows: list[LockRow]


class Hook(Struct):
    """A hook of git."""

    name: str
    path: str
    installed: bool
    keeps: bool
    other: bool
    problem: str


class Hooks(Struct):
    """`perun hooks status`."""

    schema: Literal["perun.hooks/1"]
    hooks: list[Hook]
    working: bool
    waiting: list[str]
    log: str | None


class StatsFile(Struct):
    """A file of statistics."""

    minor_version: str
    name: str
    size: int


class StatsFiles(Struct):
    """`perun stats list-files`."""

    schema: Literal["perun.stats/1"]
    files: list[StatsFile]
    total_size: int
    versions_left_out: int


class StatsVersion(Struct):
    """A version that has statistics."""

    minor_version: str
    size: int
    files: int


class StatsVersions(Struct):
    """`perun stats list-versions`."""

    schema: Literal["perun.stats/1"]
    versions: list[StatsVersion]
    total_size: int
    versions_left_out: int


class TempFile(Struct):
    """A temporary file."""

    path: str
    size: int
    json: bool
    protected: bool
    compressed: bool


class Temp(Struct):
    """`perun temp list`."""

    schema: Literal["perun.temp/1"]
    files: list[TempFile]
    total_size: int


class Runnable(Struct):
    """One thing that would run."""

    what: str
    text: str


class Trust(Struct):
    """`perun trust`."""

    schema: Literal["perun.trust/1"]
    root: str
    trusted: bool
    because: str | None
    changed_since: str | None
    runs: list[Runnable]


class SourceLine(Struct):
    """A line with its cost; `text` is `null` where the source is not known."""

    file: str
    line: int
    own: float
    inclusive: float
    text: str | None


class SourceFunction(Struct):
    """A function with its cost."""

    function: str
    source: str
    own: float
    inclusive: float
    lines: list[SourceLine]


class Lines(Struct):
    """`perun show PROFILE lines`."""

    schema: Literal["perun.lines/1"]
    command: str
    unit: str
    total: float
    of: int
    functions: list[SourceFunction]


ANSWERS: Final = tuple(
    one
    for one in list(globals().values())
    if isinstance(one, type) and issubclass(one, Struct) and "schema" in one.__struct_fields__
)
"""The forms, in their order."""


def schema() -> dict[str, Any]:
    """The JSON schema of all answers, each a definition of its own."""
    _, definitions = msgspec.json.schema_components(ANSWERS, ref_template="#/$defs/{name}")
    for one in definitions.values():
        if "description" in one:
            one["description"] = cleandoc(one["description"])  # as Python 3.13 keeps docstrings
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:perun:answers",
        "title": "What Perun's commands answer with --json",
        "description": "Within a form, keys are only ever added.",
        "anyOf": [{"$ref": f"#/$defs/{one.__name__}"} for one in ANSWERS],
        "$defs": definitions,
    }


def named(form: type[Struct]) -> tuple[str, ...]:
    """What answers of the form have as their `schema`."""
    return get_args(get_type_hints(form)["schema"])


if __name__ == "__main__":
    FILE.write_text(json.dumps(schema(), indent=1) + "\n", encoding="utf-8")
