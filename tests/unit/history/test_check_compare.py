"""Comparing pairs: how often profiles are read, and what other processes do."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import perun
from perun.core.errors import PluginError
from perun.history.check import parallel as comparing
from perun.history.check import pools
from perun.history.check.check import check_all, check_head
from perun.history.check.compare import CheckPair, Comparer
from perun.history.check.report import DEFAULTS
from perun.measurement.verdict import mirrored
from perun.profile.changes import PerformanceChange
from perun.profile.factory import Profile
from perun.repository import lookup
from perun.repository.init import init
from perun.repository.repository import Repository, open_repository
from perun.store.objects import FileObjects
from perun.store.pending import link
from profiles import columns_of, profile_of
from shared import is_running

CHECK = """\
import os
import time
from perun.utils.structs import DegradationInfo, PerformanceChange


def tell_process(baseline_profile, target_profile):
    {body}
    yield DegradationInfo(PerformanceChange.MaybeOptimization, str(os.getpid()), "a", "b", rd={rate})
"""
HANG = """\
if next(target_profile.all_resources())[1]["amount"] < 26:
        with open({!r}, "a") as file:
            print(os.getpid(), file=file)
        time.sleep(600)
        open({!r}, "x").close()
"""
NOTE = """\
with open({!r}, "a") as file:
        print(os.getpid(), file=file)
    time.sleep({})
"""


def profile(amount: float, workload: str = "") -> Profile:
    return profile_of(columns_of({"f": [amount]}), "time", "ms", cmd="app", workload=workload)


@pytest.fixture
def opened(git_repository: Callable[..., Any]) -> Callable[..., Repository]:
    """A repository with so many versions, each with a profile of each workload whose amount is its number."""

    def make(versions: int, workloads: tuple[str, ...] = ("",)) -> Repository:
        git = git_repository(commits=versions)
        environ = {**os.environ, "PYTHONPATH": str(Path(perun.__file__).parents[1])}
        init(git.path, environ)
        repo = open_repository(git.path, environ)
        for number, minor in enumerate(git.git("rev-list", "--reverse", "HEAD").split(), 1):
            items = [(profile(number, one), f"{number}{one}.perf", number) for one in workloads]
            link(repo.store, minor, items)
        return repo

    return make


@pytest.fixture
def plugin(isolated_environment: Path) -> Callable[..., Repository]:
    """Let the check `tell_process` of the repository's own plugins be the only one."""

    def write(repo: Repository, body: str = "pass", rate: str = "1.0") -> Repository:
        folder = repo.root / ".perun" / "plugins" / "check"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tell_process.py").write_text(CHECK.format(body=body, rate=rate))
        shared = isolated_environment / "perun"
        shared.mkdir(exist_ok=True)
        (shared / "shared.yml").write_text(f"plugins: {{trusted: ['{repo.root}']}}\n")
        local = "vcs: {type: git, url: ..}\ndegradation: {strategies: [{method: tell_process}]}\n"
        (repo.root / ".perun" / "local.yml").write_text(local)
        return open_repository(repo.root, repo.environ)

    return write


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other processes help from the second pair on, with few pairs each, on however few cores."""
    monkeypatch.setattr(comparing, "HELP_AFTER", 0.0)
    monkeypatch.setattr(comparing, "CHUNK_PAIRS", 2)
    monkeypatch.setattr(comparing, "usable_processors", lambda: 2)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    counts: Counter[str] = Counter()
    get_body = FileObjects.get_body

    def counting(self: FileObjects, checksum: str) -> bytes:
        counts[checksum] += 1
        return get_body(self, checksum)

    monkeypatch.setattr(FileObjects, "get_body", counting)
    return counts


def processes(repo: Repository) -> list[str]:
    """The process that compared each pair of the history, newest first."""
    return [
        change.location
        for report in check_all(repo, None)
        for one in report.comparisons
        for change in one.changes
    ]


def test_each_profile_is_read_once(opened, reads, monkeypatch) -> None:
    monkeypatch.setattr(comparing, "HELP_AFTER", 600.0)  # what others read is not counted
    repo = opened(6, ("a", "b", "c"))
    assert [len(report.comparisons) for report in list(check_all(repo, None))] == [3] * 6
    assert set(reads.values()) == {1}
    assert len(reads) == 18


def test_memory_has_a_limit(opened, reads, monkeypatch) -> None:
    """What is the baseline and then the target is read once, and once more for the noise."""
    monkeypatch.setattr(pools, "KEPT_BYTES", 1)
    repo = opened(5)
    list(check_all(repo, None))
    assert max(reads.values()) <= 2
    kept = pools.Profiles(repo)
    for number, checksum in enumerate(list(reads)):
        kept.get(checksum)
        assert len(kept._kept) == min(number + 1, 2)


@pytest.mark.usefixtures("eager")
def test_other_processes_answer_the_same_in_the_same_order(opened, plugin) -> None:
    repo = opened(12, ("a", "b"))
    helped = list(check_all(repo, None))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparing, "HELP_AFTER", 60.0)
        assert list(check_all(repo, None)) == helped
    assert [len(report.comparisons) for report in helped] == [2] * 12
    # The plugins of the repository work there, too, and they are really other processes.
    found = processes(plugin(repo))
    assert len(found) == 22
    assert found[0] == str(os.getpid())
    assert str(os.getpid()) not in found[1:]
    assert len(set(found)) == 3


@pytest.mark.usefixtures("eager")
def test_one_version_with_many_pairs(opened, plugin) -> None:
    repo = plugin(opened(2, tuple(map(str, range(20)))))
    report = check_head(repo, None)
    assert len(report.comparisons) == 20
    assert [one.target.workload for one in report.comparisons] == [
        one.baseline.workload for one in report.comparisons if one.baseline
    ]
    assert len({change.location for one in report.comparisons for change in one.changes}) == 3


def test_few_quick_pairs_are_compared_here(opened, plugin, monkeypatch) -> None:
    monkeypatch.setattr(comparing, "HELP_AFTER", 60.0)  # quick also where the machine is slow
    assert set(processes(plugin(opened(5)))) == {str(os.getpid())}


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(
    ("body", "rate"),
    [
        ("os.kill(os.getpid(), 9 if os.getpid() != PARENT else 0)", "1.0"),
        ("if os.getpid() != PARENT: raise SystemExit(3)", "1.0"),
        ("if os.getpid() != PARENT: raise ValueError('here I cannot')", "1.0"),
    ],
    ids=["killed", "ended", "raised"],
)
def test_what_another_process_cannot_do_is_done_here(opened, plugin, body, rate) -> None:
    repo = plugin(opened(8), body.replace("PARENT", str(os.getpid())), rate)
    assert processes(repo) == [str(os.getpid())] * 7


@pytest.mark.usefixtures("eager")
def test_an_error_of_a_check_is_raised_here(opened, plugin) -> None:
    repo = plugin(opened(6), "if 'amount' in repr(target_profile.serialize()): 1 / 0")
    with pytest.raises(PluginError, match=r"tell_process.*ZeroDivisionError"):
        processes(repo)


@pytest.mark.usefixtures("eager")
def test_no_process_is_left(opened, plugin, tmp_path) -> None:
    """Where the reader stops in the middle, they end at once, whatever they do."""
    log, end = tmp_path / "log", tmp_path / "end"
    log.touch()
    reports = check_all(plugin(opened(30), HANG.format(str(log), str(end))), None)
    for _ in range(4):
        next(reports)
    others: set[int] = set()
    while len(others) < 2:
        time.sleep(0.02)
        others = {int(line) for line in log.read_text().split()}
    reports.close()  # type: ignore[attr-defined]  # it is a generator
    assert not any(map(is_running, others))
    assert not end.exists()


@pytest.fixture
def signalled(opened, plugin, tmp_path) -> Callable[[signal.Signals], tuple[int, set[int]]]:
    """The exit code of a check that got the signal while others worked for it, and these other processes."""
    log = tmp_path / "log"
    log.touch()
    repo = plugin(opened(40), NOTE.format(str(log), 0.3))

    def run(number: signal.Signals) -> tuple[int, set[int]]:
        command = [sys.executable, "-P", "-m", "perun", "check", "all"]
        with subprocess.Popen(command, cwd=repo.root, env=repo.environ, stderr=subprocess.PIPE) as process:
            others: set[int] = set()
            while len(others) < 2:
                assert process.poll() is None, process.stderr
                time.sleep(0.02)
                others = {int(line) for line in log.read_text().split()} - {process.pid}
            process.send_signal(number)
            assert process.stderr is not None
            assert b"Traceback" not in process.stderr.read()
        return process.returncode, others

    return run


several = pytest.mark.skipif(comparing.usable_processors() < 2, reason="one core only: no other processes")


@several
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow)]
)
def test_signals_end_all(signalled: Callable[..., tuple[int, set[int]]], number: int, code: int) -> None:
    found, others = signalled(number)
    assert found == code
    assert not any(map(is_running, others))


@several
def test_they_end_without_the_process_that_started_them(signalled) -> None:
    _, others = signalled(signal.SIGKILL)
    deadline = time.monotonic() + 120
    while any(map(is_running, others)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_running, others))


def test_labels_are_mirrored_of_what_is_better_the_larger_it_is(opened: Callable[..., Repository]) -> None:
    repo = opened(1)
    (info,) = lookup.registered(repo, repo.vcs.get_minor_head())
    old, new = profile(10.0), profile(3.0)
    worse, better = PerformanceChange.Degradation, PerformanceChange.Optimization
    for listed, kind in (([], better), (["f"], worse), (["ms"], worse), (["g"], better)):
        for one in (old, new):
            one["header"] = {**one["header"], "larger_is_better": listed}
        (change,) = Comparer(repo, DEFAULTS).loaded(info, old, new).of(CheckPair(info, info)).changes
        assert change.result is kind, listed
        assert (change.from_baseline, change.to_target) == ("10.0ms", "3.0ms")
    for one in PerformanceChange:
        assert mirrored(mirrored(one)) is one
    assert mirrored(PerformanceChange.Unknown) is PerformanceChange.Unknown
    assert mirrored(PerformanceChange.NotInTarget) is PerformanceChange.NotInTarget
