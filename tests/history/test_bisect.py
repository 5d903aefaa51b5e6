"""`perun bisect`: the version that changed a cost, found without a clock.

Most histories here are of commits whose cost is a number in a file, which a collector reads and notes.
"""

import json
import os
import shutil
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import project
import pytest
from costs import History

from perun.core.errors import JobFailed, NotTrusted, PerunError, UsageError
from perun.profile.factory import Profile
from perun.repository import journal, registering, trust
from perun.repository.init import init
from perun.running.bisect.data import BisectResult, VersionLabel


def test_counts(make: Callable[..., History]) -> None:
    history = make([100.0] * 5 + [131.0] * 8)
    found = history.bisect(0, 12)
    assert found.first is not None and found.parent is not None
    assert (found.first.subject, found.parent.subject) == ("Commit 5", "Commit 4")
    assert found.confirmed and found.ratio is not None and found.ratio.is_exact
    assert found.ratio.value == pytest.approx(1.31)
    assert (found.measured, found.skipped, found.stored) == (4, 0, 0)
    # The ends in pairs, and each version once: what repeats exactly needs no more.
    assert all(history.runs.count(number) == 1 for number in set(history.runs) - {0, 12})
    assert len(set(history.runs)) == 6
    assert history.leftovers == []
    assert history.git("status", "--porcelain") == ""
    # All is stored, so that the next time nothing is measured but what confirms.
    before = len(history.runs)
    again = history.bisect(0, 12)
    assert again.first == found.first and again.confirmed
    assert history.runs[before:] == [4, 5]
    assert (again.measured, again.stored) == (0, 2)


def test_an_improvement_and_a_location(make: Callable[..., History]) -> None:
    history = make([100.0, 100.0, 50.0, 50.0])
    found = history.bisect(0, 3, location="sort")
    assert found.first is not None and found.first.subject == "Commit 2"
    assert found.is_degradation is False
    assert found.ratio is not None and found.ratio.costs == (50.0, 25.0)
    with pytest.raises(PerunError, match="has nothing of it") as failed:
        history.bisect(0, 3, location="sorts")
    assert failed.value.hint == "there are: sort"


def test_a_location_that_costs_nothing_before(make: Callable[..., History]) -> None:
    history = make([0.0, 0.0, 8.0, 8.0])
    found = history.bisect(0, 3, location="sort")
    assert found.first is not None and found.first.subject == "Commit 2" and found.confirmed
    assert found.ratio is not None and found.ratio.costs == (0.0, 4.0)


def test_what_was_built_for_one_bisection_is_there_for_the_next(make: Callable[..., History]) -> None:
    """Versions with the same files have folders of their own where pairs are measured."""
    history = make([1.0, 1.0, 2.0, 2.0])
    history.git("commit", "--quiet", "--allow-empty", "-m", "Commit 4")
    history = replace(history, commits=[*history.commits, history.git("rev-parse", "HEAD")])
    found = history.bisect(0, 4)
    assert found.first is not None and found.first.subject == "Commit 2" and found.confirmed
    built = history.path.glob(".perun/logs/*-pre-run.log")
    before = {path: path.stat().st_mtime_ns for path in built}
    assert len(before) in (2, 3, 4)
    found = history.bisect(0, 4)
    assert found.first is not None and found.first.subject == "Commit 2"
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert history.leftovers == []


@pytest.mark.slow
def test_noise_is_decided_by_pairs(make: Callable[..., History]) -> None:
    history = make([100.0] * 2 + [110.0] * 2, noise=0.01)
    found = history.bisect(0, 3)
    assert found.first is not None and found.first.subject == "Commit 2" and found.confirmed
    assert found.ratio is not None and not found.ratio.is_exact
    assert 1.02 < found.ratio.low < 1.1 < found.ratio.high < 1.2
    assert found.seen
    for one in found.seen:
        number = int(one.version.subject.split()[1])
        assert one.like is (VersionLabel.BAD if number > 1 else VersionLabel.GOOD)


def test_what_does_not_build_or_run_leaves_a_range(make: Callable[..., History]) -> None:
    history = make([1.0, 1.0, 1.0, None, -1.0, 2.0, None, 2.0, 2.0])
    found = history.bisect(0, 8)
    assert found.first is None and found.parent is not None
    assert [one.subject for one in found.range] == ["Commit 3", "Commit 4", "Commit 5"]
    assert found.parent.subject == "Commit 2"
    assert "2 of them cannot be built or run" in found.why
    assert history.leftovers == []


def test_the_journal_survives_a_kill_at_each_step(make: Callable[..., History]) -> None:
    """Each write to the journal is the last one of a process; what it kept is never measured again."""
    history = make([1.0] * 3 + [None] + [2.0] * 3)
    kills = 0
    for last in (1, 2, *[1] * 20):  # the plan; the first step; then each next step
        if not _killed(history, last, resume=kills > 1):
            break
        kills += 1
        if kills == 2:
            of_ends = [history.runs.count(end) for end in (0, 6)]
    assert 5 <= kills < 20
    runs = history.runs
    assert all(runs.count(one) <= 1 for one in set(runs) - {0, 6}), runs
    # Three pairs at least: what disturbs one lets it be measured again.
    assert [runs.count(end) for end in (0, 6)] == of_ends and min(of_ends) >= 4
    assert history.leftovers == []
    with pytest.raises(UsageError, match="no interrupted bisection"):
        history.bisect(resume=True)


def _killed(history: History, last: int, *, resume: bool) -> bool:
    """Bisect in a child that is killed after its last write to the journal; whether it was."""
    child = os.fork()
    if not child:
        original, count = journal._append, 0

        def append(*arguments: Any) -> None:
            nonlocal count
            original(*arguments)
            count += 1
            if count == last:
                os.kill(os.getpid(), signal.SIGKILL)

        journal._append = append
        with suppress(BaseException):
            found = history.bisect(resume=True) if resume else history.bisect(0, 6)
            os._exit(0 if [one.subject for one in found.range] == ["Commit 3", "Commit 4"] else 3)
        os._exit(4)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL)
    return status != 0


def store(history: History, costs: Mapping[int, float]) -> None:
    """Register what the collector would have measured of these commits."""
    wanted = []
    for number, cost in costs.items():
        header = {"type": "instructions", "units": {"instructions": ""}}
        header |= {"cmd": "sh build.sh", "args": "", "workload": ""}
        profile = Profile({"header": header, "collector_info": {"name": "counter", "params": {"noise": 0.0}}})
        profile.update_resources([
            {"amount": cost / 2, "type": "instructions", "subtype": "exclusive", "uid": uid}
            for uid in ("main", "sort")
        ])  # fmt: skip
        wanted.append(registering.SaveRequest(profile, history.commits[number], registers=True))
    registering.save_together(history.repository, wanted)


def test_a_change_that_is_stored(make: Callable[..., History]) -> None:
    """The versions between the last one of the old level and the first one of the new level are searched."""
    history = make([1.0] * 6 + [2.0] * 6)
    with pytest.raises(UsageError, match="shows no degradation"):
        history.bisect(metric="")
    store(history, {number: 1.0 if number < 4 else 2.0 for number in range(12) if number not in (4, 5, 6)})
    found = history.bisect(metric="")
    assert found.first is not None and found.first.subject == "Commit 6" and found.confirmed
    assert (found.good.subject, found.bad.subject) == ("Commit 3", "Commit 7")
    assert set(history.runs) == {5, 6}  # the ends are known
    by_name = history.bisect(6, metric="", location="main")
    assert by_name.first is not None and by_name.first.subject == "Commit 6"
    with pytest.raises(UsageError, match="the commit of each degradation is known"):
        history.bisect(metric="")


def test_what_is_stored_and_does_not_hold_today_is_forgotten(make: Callable[..., History]) -> None:
    history = make([1.0, 1.0, 1.0, 1.0, 2.0, 2.0])
    store(history, {0: 1.0, 2: 2.0, 1: 1.0, 5: 2.0})  # commit 2 was measured with another compiler, say
    found = history.bisect(0, 5)
    assert found.first is not None and found.first.subject == "Commit 4" and found.confirmed
    assert found.stored == 0


def test_a_spent_budget_can_be_resumed(make: Callable[..., History]) -> None:
    history = make([1.0, 1.0, 2.0])
    nothing = history.bisect(0, 2, budget=1e-9)
    assert (nothing.first, nothing.range) == (None, ())
    assert "perun bisect --resume" in nothing.why
    found = history.bisect(resume=True)
    assert found.first is not None and found.first.subject == "Commit 2"
    assert history.leftovers == []


def test_scripts_speak_as_for_git_bisect_run(make: Callable[..., History]) -> None:
    history = make([0, 0, 125, 0, 1, 125, 3, 127.0, 1])
    script = "sh -c 'exit $(cut -d. -f1 cost)'"
    found = history.bisect(0, 8, script=script)
    assert found.first is not None and found.first.subject == "Commit 4"
    assert found.ratio is None
    with pytest.raises(JobFailed, match=r"says that the good end, .* is bad"):
        history.bisect(4, 8, script=script)
    with pytest.raises(JobFailed, match=r"the bad end, .* cannot be judged: the script exits with 125"):
        history.bisect(0, 5, script=script)
    with pytest.raises(JobFailed, match="--script cannot be run: command not found: 'exit'") as failed:
        history.bisect(0, 8, script="exit 1")
    assert "sh -c '...'" in failed.value.hint
    assert history.leftovers == []  # there is nothing that --resume could go on with


def test_a_script_that_aborts_can_be_resumed(make: Callable[..., History]) -> None:
    history = make([0, 0, 128, 1, 1])
    with pytest.raises(JobFailed, match="exits with 128"):
        history.bisect(0, 4, script="sh -c 'test -e $RECORD && exit 125 || exit $(cat cost)'")
    history.record.write_text("")  # from now on it skips what it has not judged yet
    found = history.bisect(resume=True)
    assert [one.subject for one in found.range] == ["Commit 1", "Commit 2", "Commit 3", "Commit 4"]
    assert (found.measured, found.skipped) == (0, 3)
    assert history.leftovers == []


WRONG = [
    ({"good": 3, "bad": 0}, "the ends are swapped"),
    ({"good": 1, "bad": 1}, "both ends are"),
    ({"good": 0, "bad": 3, "metric": "cpu", "location": "main"}, "measured of whole runs"),
    ({"good": 0, "bad": 3, "workload": "x"}, "belong to a command"),
    ({"good": 0, "bad": 3, "script": "true", "cmd": "true"}, "judges versions by itself"),
    ({"script": "true"}, "needs the ends"),
    ({}, "shows no degradation"),
]


def test_wrong_input(make: Callable[..., History]) -> None:
    history = make([1.0, 1.0, 1.0, 1.0])
    for asked, message in WRONG:
        with pytest.raises(PerunError) as failed:
            history.bisect(**asked)
        assert message in failed.value.message, asked
    assert history.runs == []
    with pytest.raises(PerunError, match="--metric nonsense: no collector gives it"):
        history.bisect(0, 3, metric="nonsense")
    assert history.leftovers == []
    same = history.bisect(0, 3)
    assert (same.first, same.range, same.why) == (None, (), "the ends do not differ")
    assert same.ratio is not None and same.ratio.value == 1
    trust.revoke(history.repository.root, history.environ)
    with pytest.raises(NotTrusted):
        history.bisect(0, 3)


def test_an_end_that_cannot_be_measured(make: Callable[..., History]) -> None:
    history = make([-1.0, 1.0, 2.0, None])
    ends = ((0, 2, "the good end, .* measured: it crashes"), (1, 3, "the bad end, .* 'sh build.sh'"))
    for good, bad, message in ends:
        with pytest.raises(JobFailed, match=message):
            history.bisect(good, bad)
    assert history.leftovers == []


def test_the_answer(make: Callable[..., History]) -> None:
    history = make([1.0, 1.0, 2.0])
    first = history.commits[2][:7]
    done = history.perun("bisect", "HEAD~2", "--metric", "counter")
    assert done.code == 0, done.err
    assert done.out.splitlines() == [
        f"first slow commit: {first} Commit 2 (Jane Doe), 2x, 1 version measured",
        "  counter: sh build.sh  1 -> 2",
    ]
    assert f"next: perun explain {first}" in done.err
    answer = json.loads(history.perun("bisect", "HEAD~2", "--metric", "counter", "--json").out)
    assert (answer["schema"], answer["first"]["version"]) == ("perun.bisect/1", history.commits[2])
    assert answer["ratio"] == {
        "value": 2.0, "interval": None, "exact": True, "before": 1.0, "after": 2.0, "unit": "",
        "orders": None,
    }  # fmt: skip
    same = history.perun("bisect", "HEAD~2", "HEAD~1", "--metric", "counter")
    assert same.code == 12
    assert "do not differ: 1x" in same.out


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, project.Made]:
    """The history of the C program, whose five per cent hide among commits that do not build."""
    folder = tmp_path_factory.mktemp("program") / "words"
    return folder, project.make(folder, project.FEWEST, hidden=True)


def test_what_a_merge_of_a_program_brought_is_found(program, tmp_path, perun) -> None:
    folder, made = program
    history = History(folder, tmp_path / "record", made.commits, dict(os.environ), perun)
    prepare(history)
    place = made.commits.index(made.merge)
    good = place - 6  # a version that builds, from before the branch began
    merge = history.bisect(good, place, metric="regex", location="fold")
    assert merge.first is not None and merge.merged is not None
    assert (merge.first.checksum, merge.merged.checksum) == (made.slow_fold, made.merge)
    assert history.leftovers == []


@pytest.mark.slow
def test_each_change_of_a_program_is_found_alone(program, tmp_path, perun) -> None:
    folder, made = program
    history = History(folder, tmp_path / "record", made.commits, dict(os.environ), perun)
    prepare(history)

    def of(location: str, bad: str = made.commits[-1]) -> BisectResult:
        return history.bisect(made.commits[0], bad, metric="regex", location=location)

    quadratic = of("unique")
    assert quadratic.first is not None and quadratic.first.checksum == made.quadratic
    leak = of("in_use", made.before(made.revert))
    assert leak.first is not None and leak.first.checksum == made.leak
    five = of("checksum")
    assert five.first is None and made.five_percent in [one.checksum for one in five.range]
    assert five.ratio is not None and five.ratio.value == pytest.approx(1.05)
    merge = of("fold")
    assert merge.first is not None and merge.merged is not None
    assert (merge.first.checksum, merge.merged.checksum) == (made.slow_fold, made.merge)
    assert history.leftovers == []


@pytest.mark.parametrize(
    ("metric", "location", "unit"),
    [("memory", "unique", "B"), pytest.param("instructions", "unique", "instr", marks=pytest.mark.slow)],
)
def test_what_collectors_count_of_a_function(program, perun, metric, location, unit) -> None:
    """The quadratic commit allocates nothing any more, and executes more."""
    if metric == "instructions" and shutil.which("valgrind") is None:
        pytest.skip("there is no valgrind, which counts instructions; as root: apt-get install valgrind")
    folder, made = program
    history = History(folder, folder.parent / "record", made.commits, dict(os.environ), perun)
    prepare(history)
    place = made.commits.index(made.quadratic)
    found = history.bisect(place - 3, place, metric=metric, location=location)
    assert found.first is not None and found.first.checksum == made.quadratic and found.confirmed
    assert found.ratio is not None and found.ratio.is_exact and found.ratio.unit == unit
    before, after = found.ratio.costs
    assert (after == 0 < before) if metric == "memory" else (after > 10 * before > 0)
    assert found.skipped == 1
    assert history.leftovers == []


def prepare(history: History) -> None:
    """Begin Perun in it, unless another test did."""
    if not (history.path / ".perun").exists():
        init(history.path, history.environ, vcs_type="git")
        with open(history.path / ".perun/local.yml", "a") as file:
            file.write(project.SETTINGS)
    trust.grant(history.repository.root, history.repository.config, history.environ)
