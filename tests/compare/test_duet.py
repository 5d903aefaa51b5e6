"""`perun compare --duet`: both sides at the same time, on two cores."""

import itertools
import json
import os
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from perun.core import conditions
from perun.core.errors import JobFailed, UsageError
from perun.core.process.execution import RunSample
from perun.measurement.comparable import differences
from perun.measurement.difference import DEFAULTS
from perun.measurement.series import Metric
from perun.plugin.api import MinorVersion
from perun.profile import session
from perun.profile.changes import PerformanceChange
from perun.profile.factory import Profile
from perun.running.compare import decide
from perun.running.compare.decide import Duet, PairRunner, duet_cores, one_core
from perun.running.compare.instruments import BudgetSpent, Reading, SideFailed
from perun.running.compare.plan import ComparePlan, CompareSide
from perun.running.compare.trial import Trial, run
from shared import is_running, two_cores, wait_for

T = TypeVar("T")
CORES = sorted(os.sched_getaffinity(0))

PLAYER = """\
core=$(sed -n 's/^Cpus_allowed_list:[^0-9]*//p' /proc/self/status)
copy=${PWD%/tree}
echo start ${copy##*/} $core $$ >>$RECORD
"""
"""Says that it runs, in which copy and where; the lines of the record are in the order of events."""
MEETS = """\
count() { grep -c start $RECORD; }
while [ $(count) -gt 2 ] && [ $(($(count) % 2)) = 1 ]; do sleep 0.01; done
echo end >>$RECORD
"""
"""Beyond the two runs to warm up, it ends only where another one runs beside it."""


def timed(project: Any, *programs: str, **options: Any) -> Any:
    """The comparison of the last two versions, of which these are the programs."""
    for number, program in enumerate(programs):
        project.git.commit(f"Program {number}", {"run.sh": PLAYER + program, "n": f"{number} {program}"})
    base = "HEAD~1" if len(programs) == 2 else "HEAD"
    return project.only(base, "HEAD", cmd="sh run.sh", **{"duet": True, "always": True} | options)


def twos(items: Sequence[T]) -> list[tuple[T, T]]:
    """The items two by two."""
    return list(zip(items[::2], items[1::2], strict=True))


def events(project: Any) -> list[list[str]]:
    return [line.split() for line in project.record.read_text().splitlines()]


@pytest.fixture
def undisturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the machine does meanwhile, so that no pair is repeated."""
    monkeypatch.setattr(conditions, "now", lambda: conditions.Moment(0, 0, 0.0, 0.0))


# -- real programs -------------------------------------------------------------------------------------------


@two_cores
@pytest.mark.usefixtures("undisturbed")
def test_both_sides_run_at_the_same_time_on_cores_that_are_swapped(project: Any) -> None:
    found = timed(project, MEETS, most_pairs=4)
    assert found.error is None
    assert found.session["duet"] is not None and found.session["pinned"]
    first, second = found.session["duet"]
    assert f"both sides at the same time on cores {first} and {second}" in found.notes[0]
    starts = [(one[1], one[2]) for one in events(project) if one[0] == "start"]
    (base, _), (head, _) = starts[:2]  # to warm up
    duets = [{name: int(core) for name, core in pair} for pair in twos(starts[2:])]
    bases = [one[base] for one in duets]
    assert {tuple(sorted(one.values())) for one in duets} == {(first, second)}
    compared = [one[base] for one in duets if head in one]
    assert len(compared) >= 4 and all(one != other for one, other in itertools.pairwise(compared))
    assert sum(one.keys().isdisjoint({head}) for one in duets) == len(compared)  # beside the base's copy
    assert len({name for one in duets for name in one}) == 3
    assert all(one == other for one, other in twos(bases))  # both duets of a pair


@two_cores
def test_in_turns_they_never_do(project: Any) -> None:
    found = timed(project, "echo end >>$RECORD\n", most_pairs=4, duet=False)
    assert found.session["duet"] is None
    kinds = [kind for kind, *_ in events(project)]
    assert len(kinds) >= 2 * (2 + 3 * 4)
    assert kinds == ["start", "end"] * (len(kinds) // 2)


FOREVER = "[ $(grep -c start $RECORD) -gt 2 ] && exec sleep 1000\nexit 0\n"
BROKEN = "[ $(grep -c start $RECORD) -gt 2 ] && { echo it broke >&2; exit 3; }\nexit 0\n"


@two_cores
@pytest.mark.parametrize(("programs", "name"), [((FOREVER, BROKEN), "head"), ((BROKEN, FOREVER), "base")])
def test_a_side_that_fails_is_named_and_the_other_one_ended(
    project: Any, programs: tuple[str, str], name: str
) -> None:
    """Also a base that fails in the duet with its copy, which goes on only where nothing fails."""
    found = timed(project, *programs, order="abba", most_pairs=4)
    assert isinstance(found.error, JobFailed)
    assert found.reason.startswith(f"{name} (") and "exited with status 3" in found.reason
    assert "it broke" in found.reason
    wait_for(lambda: not any(is_running(int(one[3])) for one in events(project)))
    assert project.registered("HEAD") == []


@two_cores
def test_what_takes_longer_than_the_budget_is_ended(project: Any) -> None:
    found = timed(project, FOREVER, budget=1.5)
    (change,) = found.results[0].changes
    assert change.result is PerformanceChange.Unknown
    wait_for(lambda: not any(is_running(int(one[3])) for one in events(project)))


@two_cores
@pytest.mark.parametrize("workload", ["< cost", "<< 'one line\n'"])
def test_input_output_and_memory_are_as_in_turns(project: Any, workload: str) -> None:
    """Each side reads its input from the start; what it writes goes nowhere."""
    program = "echo shown; echo said >&2; wc -l >>$RECORD.lines\n"
    found = timed(project, program, workload=workload, metrics=("wall", "peak-memory"), most_pairs=3)
    assert found.error is None
    lines = Path(f"{project.record}.lines").read_text().split()
    assert len(lines) == len(events(project)) and set(lines) == {"1"}
    stored = [one for one in project.registered("HEAD") if session.session_of(one).side == "head"]
    peaks, times = sorted(stored, key=lambda one: one["header"]["type"])
    assert peaks["header"]["type"] == "memory" and times["header"]["type"] == "time"
    assert session.is_duet(times) and session.is_duet(peaks)


@two_cores
def test_sides_that_differ_much_are_told(project: Any) -> None:
    found = timed(project, "exit 0\n", "sleep 0.3\n", metrics=("wall",), most_pairs=3)
    assert any("differ by more than 2x" in note for note in found.notes)


@two_cores
def test_collectors_measure_in_turns(project: Any) -> None:
    found = project.only("HEAD~1", "HEAD", metrics=("counter",), always=True, duet=True)
    assert found.session["duet"] is None
    assert "measured in turns in spite of --duet: collectors record one run at a time" in found.notes


# -- what is refused -----------------------------------------------------------------------------------------


def test_one_processor_is_refused(project: Any) -> None:
    os.sched_setaffinity(0, CORES[:1])
    try:
        with pytest.raises(UsageError, match="--duet needs two processors, and this process may use one"):
            project.compare("HEAD~1", "HEAD", duet=True)
    finally:
        os.sched_setaffinity(0, CORES)
    assert project.leftovers == []


def test_a_quota_and_no_pin_are_refused(monkeypatch: pytest.MonkeyPatch, project: Any) -> None:
    with pytest.raises(UsageError, match="which --no-pin forbids"):
        project.compare("HEAD~1", "HEAD", duet=True, pin=False)
    monkeypatch.setattr(decide, "usable_cores", lambda pin: (0, 1))
    monkeypatch.setattr(conditions, "quota", lambda: 1.5)
    with pytest.raises(UsageError, match=r"a control group allows 1\.5$"):
        duet_cores(pin=True)


def test_processors_of_different_cores_are_preferred(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def system(siblings: Sequence[str], fastest: Sequence[str]) -> tuple[int, int]:
        for number, (own, frequency) in enumerate(zip(siblings, fastest, strict=True)):
            cpu = tmp_path / f"sys/devices/system/cpu/cpu{number}"
            for name, text in (
                ("topology/thread_siblings_list", own),
                ("cpufreq/cpuinfo_max_freq", frequency),
            ):
                (cpu / name).parent.mkdir(parents=True, exist_ok=True)
                (cpu / name).write_text(text)
        monkeypatch.setattr(decide, "usable_cores", lambda pin: tuple(range(len(siblings))))
        return duet_cores(pin=True)

    real = conditions.of_processor
    monkeypatch.setattr(conditions, "of_processor", lambda number: real(number, tmp_path))
    monkeypatch.setattr(conditions, "quota", lambda: None)
    assert system(["0-1", "0-1", "2-3", "2-3"], ["5"] * 4) == (0, 2)
    assert system(["0", "1", "2", "3"], ["5", "3", "3", "3"]) == (1, 2)
    assert not one_core((1, 2))
    assert system(["0-1", "0-1"], ["5", "5"]) == (0, 1)
    assert one_core((0, 1))
    assert not one_core(())
    assert system(["", ""], ["", ""]) == (0, 1)
    assert not one_core((0, 1))


# -- pairs of given readings ---------------------------------------------------------------------------------

CPU = Metric("./p", "time", "cpu", "s", False)
VERSION = MinorVersion("2024-03-04 09:00:00", "Ada", "ada@example.org", "a" * 40, "One", ())
PLAN = ComparePlan(CompareSide("base", VERSION), CompareSide("head", VERSION._replace(checksum="b" * 40)), ())


ALONE = RunSample(1.0, 0.5, 0.1, 0)


class Given:
    """Gives what each folder costs, times what the machine does to all that runs at the same moment."""

    name = "given"

    def __init__(self, slowed: Callable[[], float], sample: RunSample = ALONE) -> None:
        self.duets: list[tuple[str, ...]] = []
        self.now = 0.0
        self._slowed = slowed
        self._sample = sample

    def measure(self, folder: Path, seconds: float, core: int | None) -> Reading:
        self.now += 1
        return Reading({CPU: {"base": 1.0, "head": 1.1, "noise": 1.0}[folder.name]}, self._sample)

    def both(self, folders: Sequence[Path], seconds: float, cores: Sequence[int]) -> list[Reading]:
        self.now += 1
        self.duets.append((*(one.name for one in folders), *map(str, cores)))
        slower = self._slowed()
        # One of the cores is slower than the other.
        return [
            Reading({CPU: self.measure(one, 1, None).values[CPU] * slower * (1 + core / 1000)})
            for one, core in zip(folders, cores, strict=True)
        ]

    def trial(self, order: str = "random", most: int = 10, both: Any = None) -> Trial:
        folders = {name: [Path(name)] for name in ("base", "head", "noise")}
        duet = Duet((0, 1), both or self.both)
        runner = PairRunner(self, PLAN, folders, order, (0, 1), random.Random(3), duet)
        return run("given", runner, DEFAULTS, most, 1000.0, lambda *progress: None, lambda: self.now)


@pytest.mark.usefixtures("undisturbed")
def test_what_slows_both_of_a_duet_is_no_difference() -> None:
    """The head is compared with the base beside it, and the noise with the other one."""
    rng = random.Random(4)
    trial = Given(lambda: rng.uniform(1, 50)).trial()
    (decision,) = trial.decisions
    assert decision.verdict.change is PerformanceChange.Degradation
    assert decision.verdict.difference.ratio == pytest.approx(1.1, rel=2e-3)
    assert decision.noise is not None
    assert 0.998 < decision.noise.low <= decision.noise.high < 1.002


@pytest.mark.usefixtures("undisturbed")
def test_each_pair_swaps_the_cores_and_has_its_own_order() -> None:
    given = Given(lambda: 1.0)
    given.trial()
    pairs = twos(given.duets)
    assert len(pairs) == 10
    for number, pair in enumerate(pairs):
        assert {one[:2] for one in pair} == {("base", "head"), ("base", "noise")}
        assert {one[2:] for one in pair} == {pairs[number % 2][0][2:]}
    assert pairs[0][0][2:] == pairs[1][0][:1:-1]
    assert len({pair[0][1] for pair in pairs}) == 2
    mirrored = Given(lambda: 1.0)
    mirrored.trial(order="abba")
    assert [one[1] for one in mirrored.duets[:4]] == ["head", "noise", "noise", "head"]


@pytest.mark.usefixtures("undisturbed")
def test_what_uses_several_cores_is_measured_in_turns() -> None:
    given = Given(lambda: 1.0, RunSample(1.0, 1.5, 0.1, 0))
    trial = given.trial()
    assert (given.duets, trial.together, trial.parallel, trial.pinned) == ([], (), True, False)


@pytest.mark.usefixtures("undisturbed")
@pytest.mark.parametrize(("number", "sides"), [(0, {"base"}), (1, {"base", "head"})])
def test_the_side_is_named(number: int, sides: set[str]) -> None:
    def failing(folders: Sequence[Path], seconds: float, cores: Sequence[int]) -> list[Reading]:
        raise SideFailed(number, JobFailed("it broke"))

    with pytest.raises(JobFailed, match=rf"^({'|'.join(sides)}) \(\w{{10}}\): it broke$"):
        Given(lambda: 1.0).trial(both=failing)


@pytest.mark.usefixtures("undisturbed")
def test_a_budget_is_counted_in_duets() -> None:
    given = Given(lambda: 1.0)

    def slow(folders: Sequence[Path], seconds: float, cores: Sequence[int]) -> list[Reading]:
        raise BudgetSpent

    trial = given.trial(both=slow)
    assert (trial.pairs, trial.reason) == ([], "the budget of 1,000 s is spent")


# -- what is stored ------------------------------------------------------------------------------------------


def profile(own: session.Session | None = None, duet: object = None, kind: str = "time") -> Profile:
    made = Profile({"header": {"type": kind}})
    if own is not None:
        session.mark(made, own)
        made["header"][session.KEY]["duet"] = duet
    return made


def test_times_of_duets_are_compared_with_each_other_only() -> None:
    base, head = (session.Session("one", side, runs_are_rounds=True) for side in ("base", "head"))
    other = session.Session("two", "head", runs_are_rounds=True)
    assert differences(profile(base, [0, 1]), profile(head, [0, 1])) == []
    assert differences(profile(base, [0, 1]), profile(other, [2, 3])) == []
    for alone in (profile(), profile(other), profile(other, None)):
        (found,) = differences(alone, profile(head, [0, 1]))
        assert found == ("program beside it", "none", "the other side of the comparison")
        assert [one.name for one in differences(profile(head, [0, 1]), alone)] == [found.name]
    assert differences(profile(kind="memory"), profile(head, [0, 1], "memory")) == []


def test_pooled_duets_stay_duets() -> None:
    sides = [session.Session(one, "head", runs_are_rounds=True) for one in ("one", "two")]
    pooled = session.pool([profile(one, [0, 1]) for one in sides])
    assert session.is_duet(pooled) and session.session_of(pooled) is None
    assert session.KEY not in session.pool([profile(one) for one in sides])["header"]


@two_cores
def test_check_uses_the_duet_also_where_the_base_was_measured_again(project: Any) -> None:
    project.configure("degradation: {strategies: [{method: hodges_lehmann_ratio}]}\n")
    options = ["-c", "sh run.sh", "--always", "--max-pairs", "10", "--json"]
    (compared,) = json.loads(project.perun("compare", "HEAD~1", "HEAD", "--duet", *options).out)[
        "comparisons"
    ]
    assert compared["session"]["duet"] is not None
    while int(time.time()) <= max(one.time for one in project.entries("HEAD~1")):
        time.sleep(0.05)  # so that what follows is newer
    project.perun("compare", "HEAD~2", "HEAD~1", *options)
    (checked,) = json.loads(project.perun("-v", "check", "head", "--json").out)["comparisons"]
    said = ("ratio", "ratio_low", "ratio_high", "verdict")
    of_compare, of_check = (
        {
            one["location"]: [one[name] for name in said]
            for one in answer["changes"]
            if one["method"] == "hodges_lehmann_ratio"
        }
        for answer in (compared, checked)
    )
    shared = of_compare.keys() & of_check.keys()
    assert shared and {name: of_check[name] for name in shared} == {name: of_compare[name] for name in shared}
    newest = json.loads(project.perun("log", "-n", "1", "--json").out)["versions"][0]["values"]
    assert {one["difference"]["verdict"] for one in newest} == {"Unknown"}
    assert ["program beside it" in one["difference"]["reason"] for one in newest] == [True]
