"""`perun guard check`: runs what the contracts are about, as it is in the working directory, and says whether
they are kept; of times, by pairs with another version, each built in a working copy. Nothing is stored."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.core.errors import NotTrusted, PerunError
from perun.core.process.command import find_executable, is_python, split
from perun.measurement.contract import GrowthLimit, Keeping, bounded, growth, like_before, paired
from perun.measurement.difference import Rules
from perun.measurement.series import measurements
from perun.plugin.api import MinorVersion, Report
from perun.profile.factory import Profile
from perun.repository.jobs import Job, make_unit
from perun.repository.repository import Repository
from perun.repository.trust import Brought, RunnableItem
from perun.running.compare.compare import WITH_ALWAYS, compare
from perun.running.compare.instruments import quiet
from perun.running.compare.plan import CompareOptions, plan
from perun.running.guard.contracts import METRICS, TIMES, Contract, CountBound, LockedShare, PairedShare
from perun.running.run.pre_run import environment
from perun.running.run.together import CollectTask, Together

CONFIDENCE: Final = 0.99
_HERE: Final = MinorVersion("", "", "", "", "", ())
"""What is measured is no version: the working directory as it is."""
_ALONE: Final[Mapping[str, dict[str, Any]]] = {"instructions": {"callers": 0}}
"""Parameters of collectors where only counts of functions are asked for."""
_PYTHON: Final = {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}
"""What makes allocations of Python's objects seen, and the same in each run."""
_LINKER: Final = ("ld-linux", "ld-musl", "ld.so", "ld64.so")
"""What the names of dynamic linkers begin with."""
Counts = Mapping[str, float]
"""What a run counted, by `METRIC` of the whole program, and by `METRIC of FUNCTION`."""


class RunKey(NamedTuple):
    """One run: a command, and the collector that counts."""

    command: str
    collector: str


class ContractOutcome(NamedTuple):
    """A contract, and whether it is kept: None where that cannot be told. :param error: why it could not be
    checked; empty where it was."""

    contract: Contract
    keeping: Keeping
    error: str = ""


def check(
    repo: Repository,
    contracts: Sequence[Contract],
    lock: Mapping[str, Counts],
    source: Path,
    commands: Iterable[str],
    report: Report,
) -> Iterator[ContractOutcome]:
    """Whether each of the contracts is kept: those on counts, in their order, and then those on times.

    Each command is run once for each collector that its contracts need, several at once on several cores:
    counts do not depend on what else runs. Times do, so they are measured when nothing is counted any more.

    :param lock: what was counted before, by command. :param source: the file that they are of.
    :param commands: all that the file names.
    :raises NotTrusted: where the user has not said that he trusts what the file would run.
    """
    repo.require_trust("checking contracts", named_by(source, commands))
    # The largest size first: the others fill what time the other cores have then.
    wanted = list(dict.fromkeys(key for one in contracts for key in reversed(keys_of(one))))
    found: dict[RunKey, Counts | PerunError] = {}
    waiting = [one for one in contracts if not isinstance(one.limit, PairedShare)]
    for key, counted in measured(repo, wanted, report) if wanted else ():
        found[key] = counted
        while waiting and all(one in found for one in keys_of(waiting[0])):
            yield _outcome(waiting.pop(0), found, lock)
    for one in contracts:
        if isinstance(one.limit, PairedShare):
            yield _beside_version(repo, one, one.limit, report)


def keys_of(one: Contract) -> list[RunKey]:
    """The runs that a contract on counts needs."""
    if one.metric in TIMES:
        return []
    return [RunKey(command, METRICS[one.metric].collector) for command in one.commands()]


def named_by(source: Path, commands: Iterable[str]) -> Brought:
    """The commands of a file of the project, which anybody may have written: the user trusts them as a whole,
    and again where one is new."""
    runs = tuple(RunnableItem("command", command) for command in sorted(set(commands)))
    return Brought(str(source.resolve()), runs, [one.text for one in runs])


def measured(
    repo: Repository, wanted: Sequence[RunKey], report: Report
) -> Iterator[tuple[RunKey, Counts | PerunError]]:
    """What each run counted, or why it failed, as soon as it has; the user trusts them."""
    with Together(repo) as together:
        report("counting", 0, len(wanted))
        tasks = [_tasks(repo, one) for one in wanted]
        for number, (at, (*_, done)) in enumerate(together.as_done(tasks), 1):
            report(f"counted {wanted[at].collector} of {wanted[at].command}", number, len(wanted))
            try:
                yield wanted[at], counts(done.taken(), wanted[at].command)
            except PerunError as problem:
                yield wanted[at], problem


def _tasks(repo: Repository, run: RunKey) -> list[CollectTask]:
    """The run; twice where only the first one would allocate for the compilation of Python's modules. What
    counts instructions runs a program once before."""
    unit = quiet(make_unit(repo, "collect", run.collector, _ALONE.get(run.collector, {}), "perun guard"))
    job = Job(*_parts(run.command), unit)
    environ = environment(repo)
    if run.collector == "instructions":
        return [CollectTask(job, _HERE, repo.working_root)]
    is_python = _runs_python(job.cmd, repo.working_root, environ)
    return [CollectTask(job, _HERE, repo.working_root, {**environ, **_PYTHON})] * (1 + is_python)


def _parts(command: str) -> tuple[str, str, str]:
    """The program, its arguments, and what it reads from a file, as jobs have them."""
    words = split("command", command)
    at = words.index("<") if "<" in words else len(words)
    source = " ".join(("<", *map(shlex.quote, words[at + 1 :]))) if words[at:] else ""
    return words[0], shlex.join(words[1:at]), source


def _runs_python(word: str, folder: Path, environ: Mapping[str, str]) -> bool:
    try:
        return is_python(word, Path(find_executable(word, folder, environ)))
    except (PerunError, OSError):
        return False  # the run says it


def counts(profile: Profile, command: str) -> Counts:
    """What the profile of the command has of the whole program and of its functions.

    What the dynamic linker executes is left out: it depends on the environment, as on how many variables
    there are.
    """
    found: dict[str, float] = {}
    program = Path(split("command", command)[0]).name
    by_kind = {(one.type, one.subtype): name for name, one in METRICS.items()}
    for series in measurements(profile).values():
        metric = series.metric
        place, _, function = metric.uid.rpartition(":")
        subtype, is_whole = metric.subtype, metric.subtype == "inclusive"
        if metric.type == "memory":
            is_whole, function = place == program, place.rpartition(":")[2]
        elif metric.subtype == "exclusive":
            subtype = "inclusive"
        name = by_kind.get((metric.type, subtype))
        if name is None or (is_whole and metric.type == "instructions" and function != "total"):
            continue
        amount = float(series.values.sum())
        if metric.type == "instructions" and place.startswith(_LINKER):
            key, amount = name, -amount
        else:
            key = name if is_whole else f"{name} of {function}"
        found[key] = found.get(key, 0.0) + amount
    return found


def _outcome(
    one: Contract, found: Mapping[RunKey, Counts | PerunError], lock: Mapping[str, Counts]
) -> ContractOutcome:
    key = f"{one.metric} of {one.function}" if one.function else one.metric
    metric = METRICS[one.metric]
    values = []
    for command in one.commands():
        counted = found[RunKey(command, metric.collector)]
        if isinstance(counted, PerunError):
            return ContractOutcome(one, Keeping(None, "it was not measured"), f"{command}: {counted.message}")
        if one.metric not in counted:
            return ContractOutcome(one, Keeping(None, "it was not counted"), f"{command}: no {one.metric}")
        values.append(counted.get(key, 0.0))
    if one.function and not any(values):
        what = f"no {one.metric} were counted of a function {one.function!r}"
        return ContractOutcome(one, Keeping(None, "it was not counted"), what)
    if isinstance(one.limit, GrowthLimit):
        return ContractOutcome(one, growth(one.sizes, values, one.limit, CONFIDENCE))
    if isinstance(one.limit, CountBound):
        return ContractOutcome(one, bounded(one.sizes or [0], values, one.limit, metric.unit))
    assert isinstance(one.limit, LockedShare), "times are not counted"
    return _beside(one, key, values, one.limit, lock)


def _beside_version(repo: Repository, one: Contract, limit: PairedShare, report: Report) -> ContractOutcome:
    """The working directory beside the version, as `perun compare` measures them.

    :raises NotTrusted: where the user has not said that he trusts the repository.
    """
    rules = Rules.of(repo.config.section("degradation"))
    rules = rules._replace(threshold=limit.share, exact=limit.share, maybe_confidence=rules.confidence)
    try:
        options = CompareOptions(
            limit.version, None, *_parts(one.command), (TIMES[one.metric],), rules, budget=limit.seconds,
            stores=False,
        )  # fmt: skip
        outcome = compare(repo, plan(repo, options), options, report)
    except NotTrusted:
        raise
    except PerunError as problem:
        return ContractOutcome(one, Keeping(None, "it was not measured"), problem.message)
    if outcome.interruption is not None:
        raise outcome.interruption
    (comparison,) = outcome.report.comparisons
    if comparison.error is not None:
        return ContractOutcome(one, Keeping(None, "it was not measured"), comparison.error.message)
    if comparison.same:
        return ContractOutcome(one, Keeping(True, comparison.reason.removesuffix(WITH_ALWAYS)))
    (change,) = comparison.results[0].changes
    keeping = paired(change, limit.share)
    # What options of `perun compare` say, the line of a contract has itself.
    reason = keeping.reason.replace("with --budget", "by `within`").replace("--budget", "`within`")
    return ContractOutcome(one, keeping._replace(reason=reason.replace("--metric ", "")))


def _beside(
    one: Contract, key: str, values: Sequence[float], limit: LockedShare, lock: Mapping[str, Counts]
) -> ContractOutcome:
    """The worst of its commands beside the lock."""
    unit, worst = METRICS[one.metric].unit, None
    for command, value in zip(one.commands(), values, strict=True):
        before = lock.get(command, {}).get(key)
        if before is None:
            what = f"the lock has no {key} of {command}: write it with perun lock"
            return ContractOutcome(one, Keeping(None, "it was not compared"), what)
        keeping = like_before(before, value, limit.share, unit)
        if worst is None or keeping.kept is False:
            worst = keeping
    assert worst is not None
    return ContractOutcome(one, worst)
