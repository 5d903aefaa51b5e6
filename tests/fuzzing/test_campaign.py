"""The loop, with a program that is a function: what it finds, repeats, keeps and survives."""

import math
import os
import time
from itertools import islice
from pathlib import Path

import pytest
from in_process import SEED, InProcess, campaign, events_of

from perun.core.errors import JobFailed, ProfileError
from perun.fuzz import folder as folders
from perun.fuzz import results
from perun.fuzz.executing import SerialExecutor
from perun.fuzz.findings import FILE, CampaignJournal, CampaignStatus, InterestingInput, SeedRuns, read
from perun.fuzz.findings import MemberTest as Said
from perun.fuzz.mutating import Mutator
from perun.fuzz.results import Confirmation, Program
from perun.fuzz.rules import MutationRule
from perun.fuzz.seeds import SeedFile

PROGRAM = Program("./prog", "", "/project")


def names(one):
    return [member.name for member in one.found.interesting]


def test_it_finds_what_is_quadratic(tmp_path):
    one = campaign(tmp_path)
    events = events_of(one)
    assert isinstance(events[0], SeedRuns)
    assert events[0].base == one.found.base == sum([100, 15, 4, 1])
    assert isinstance(events[-1], CampaignStatus) and one.ended == "600 executions were made"
    best = max(one.found.interesting, key=lambda member: member.lines)
    assert best.icov > 3 and b"     " in best.data and len(best.data) <= 200
    assert best.rules and best.seed == "words.txt"
    values = [point.value for point in one.found.coverage]
    assert values == sorted(set(values))
    assert one.found.coverage[-1].value == one.found.best == best.icov


def test_edges_are_not_called_lines(tmp_path):
    class Edges(InProcess):
        unit = "edges"

    campaigns = [campaign(tmp_path / kind.__name__, SerialExecutor(kind())) for kind in (InProcess, Edges)]
    units = [events_of(one)[0].unit for one in campaigns]
    assert units == ["lines", "edges"]


def test_the_same_seed_makes_the_same_search(tmp_path):
    first, second, other = (
        campaign(tmp_path / name, seed=seed) for name, seed in (("a", 5), ("b", 5), ("c", 6))
    )
    for one in (first, second, other):
        events_of(one)
    assert names(first) == names(second)
    assert [tally.result() for tally in first.mutator.tallies.values()] == [
        tally.result() for tally in second.mutator.tallies.values()
    ]
    assert names(first) != names(other)


def test_it_goes_on_where_the_journal_ends(tmp_path):
    first = campaign(tmp_path, executions=100)
    events_of(first)
    second = campaign(tmp_path, executions=500, seed=9)
    second.restore(islice(read(tmp_path), 1, None))
    assert names(second) == names(first)
    known, restored = first.found, second.found
    assert (restored.base, restored.best) == (known.base, known.best)
    assert second.executions == first.executions
    assert restored.compass.best.tolist() == known.compass.best.tolist()
    assert restored.compass.holders.tolist() == known.compass.holders.tolist()
    list(second.search())
    assert second.executions == 500 and second.found.best >= first.found.best
    assert len(second.found.corpus) > len(first.found.corpus)
    assert len({member.number for member in second.found.corpus}) == len(second.found.corpus)


@pytest.mark.parametrize("cut", [1, 40, 300])
def test_a_torn_line_loses_no_other_one(tmp_path, cut):
    """A kill tears the last line at most."""
    one = campaign(tmp_path, executions=300)
    events_of(one)
    journal = tmp_path / FILE
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines)[:-cut] if cut < len(lines[-1]) else b"".join(lines[:-1]))
    again = campaign(tmp_path, executions=300)
    again.restore(islice(read(tmp_path), 1, None))
    assert names(again) == names(one)
    list(again.search())
    third = campaign(tmp_path)
    third.restore(islice(read(tmp_path), 1, None))
    assert names(third) == names(again)


def test_a_kill_at_any_moment_loses_the_last_second_at_most(tmp_path):
    """What a kill leaves is the journal up to some line; each is a moment of the campaign."""
    now = [0.0]

    def clock():
        now[0] += 0.01
        return now[0]

    moments = []

    class Watched(CampaignJournal):
        def write(self, kind, **values):
            super().write(kind, **values)
            if kind != "campaign":
                size = os.path.getsize(folder / FILE)
                moments.append((size, one.seconds, one.executions, names(one), len(one.found.faults)))

    class Fragile(InProcess):
        def run(self, data, timeout, until=math.inf):
            return super().run(b"crash" if b" " * 9 in data else data, timeout, until)

    folder = tmp_path / "whole"
    one = campaign(folder, SerialExecutor(Fragile()), clock=clock, executions=400)
    one.found._journal = one._journal = Watched(folder)
    events_of(one)
    whole = (folder / FILE).read_bytes()
    began = next(at for at, (size, *_) in enumerate(moments) if b'"kind":"began"' in whole[:size])
    assert len(moments) > 60 and one.seconds > 20
    for number, (size, seconds, executions, interesting, faults) in enumerate(moments[began::5]):
        killed = tmp_path / str(number)
        (killed / "logs").mkdir(parents=True)
        (killed / FILE).write_bytes(whole[: size + number % 3 * 20])  # the next line may be torn
        again = campaign(killed)
        again.restore(islice(read(killed), 1, None))
        assert again.seconds > seconds - 1.1
        rate = executions / seconds
        assert again.executions >= executions - max(5, 3 * rate)
        assert set(interesting) >= set(names(again)) >= set(interesting[:-1])
        assert faults - 1 <= len(again.found.faults) <= faults
        assert again.found.base == one.found.base


def test_what_was_found_without_coverage_is_restored_with_its_measurements(tmp_path):
    def test(member, seed, seconds):
        return Said("ok", Confirmation("Degradation", 1.0, "fake", ratio=3.0))

    first = campaign(tmp_path, test=test, coverage=False, tests_between=True, executions=5)
    events_of(first)
    second = campaign(tmp_path, test=test, coverage=False, executions=5)
    second.restore(islice(read(tmp_path), 1, None))
    assert names(second) == names(first)
    assert all(one.confirmation.ratio == 3.0 for one in second.found.interesting)
    assert second.found.best == 3.0


def test_a_hang_that_measuring_found_is_restored(tmp_path):
    first = campaign(tmp_path, test=lambda *given: Said("hang", ending="did not end"), tests_between=True)
    events_of(first)
    assert first.found.hangs
    second = campaign(tmp_path)
    second.restore(islice(read(tmp_path), 1, None))
    assert [one.name for one in second.found.hangs] == [one.name for one in first.found.hangs]
    endings = {one.name: one.ending for one in second.found.interesting}
    assert all(endings[one.name] == "did not end" for one in second.found.hangs)


def test_no_journal_is_told(tmp_path):
    with pytest.raises(ProfileError, match="holds no campaign to resume"):
        next(read(tmp_path))
    (tmp_path / "logs").mkdir()
    (tmp_path / FILE).write_text("nonsense\n")
    with pytest.raises(ProfileError, match="is no journal of this version"):
        next(read(tmp_path))


def test_faults_and_hangs_are_kept_apart(tmp_path):
    class Fragile(InProcess):
        def run(self, data, timeout, until=math.inf):
            if b"  " * 4 in data:
                return super().run(b"crash", timeout, until)
            if data.count(b"\n") > 3:
                return super().run(b"stop", timeout, until)
            return super().run(data, timeout, until)

    one = campaign(tmp_path, SerialExecutor(Fragile()), hang=0.1)
    events = events_of(one)
    assert one.found.faults
    assert all("SIGSEGV" in member.ending for member in one.found.faults)
    assert one.found.hangs and one.found.hangs[0].ending == "did not end within 0.1 s"
    assert {event.kind for event in events if isinstance(event, InterestingInput)} == {
        "slow",
        "fault",
        "hang",
    }
    written = folders.write(tmp_path, one, PROGRAM, {}, 1)
    for kind, members in (("fault", one.found.faults), ("hang", one.found.hangs)):
        stored = written.of_kind(kind)
        assert [(tmp_path / found.file).read_bytes() for found in stored] == [one.data for one in members]
        assert all(found.lines is None and found.ratio is None for found in stored)


def test_more_faults_than_anybody_reads_are_counted(tmp_path):
    class Broken(InProcess):
        def run(self, data, timeout, until=math.inf):
            return super().run(data if data == SEED.data else b"crash", timeout, until)

    one = campaign(tmp_path, SerialExecutor(Broken()))
    events_of(one)
    assert len(one.found.faults) == 100 and one.status().faults == 600 - 2


def test_what_is_stopped_early_is_tried_again(tmp_path):
    """Runs of 0.3 s are longer than anything is given at first, but no hang."""
    stopped = []

    class Slow(InProcess):
        def run(self, data, timeout, until=math.inf):
            if data.count(b" ") > 20 and timeout < 0.3:
                stopped.append(data)
                return super().run(b"stop", timeout, until)
            return super().run(data, timeout, until)

    now = [0.0]

    def clock():
        now[0] += 0.01
        return now[0]

    one = campaign(tmp_path, SerialExecutor(Slow()), clock=clock, executions=2500)
    events_of(one)
    assert stopped and {member.data for member in one.found.interesting} & set(stopped)
    assert not one.found.hangs


class Clock:
    """Time that passes only when somebody says so."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_mutations_are_made_only_as_long_as_there_is_time(tmp_path):
    """Those of large inputs take long: they are not all made before the first of them is run."""
    clock = Clock()
    made = []

    def slow(data, random, corpus):
        clock.now += 1.0
        made.append(data)
        return data + bytes([random.randrange(97, 123)])

    one = campaign(tmp_path, seconds=5.0, clock=clock, executions=None, strategy="proportional")
    rules = [MutationRule(f"X.{number}", "slow", "", "text", slow) for number in range(50)]
    one.mutator = Mutator(rules, "unitary", 200, one.random)
    events_of(one)
    assert one.ended == "the time is over"
    assert 5 <= len(made) <= 5 + 8  # a mutation has up to eight rules


def test_mutations_that_wait_do_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("perun.fuzz.campaign._ROOM", 300)
    waiting = []

    class Counting(SerialExecutor):
        def run(self, tasks):
            waiting.append([len(task.data) for task in tasks])
            return super().run(tasks)

    one = campaign(tmp_path, Counting(InProcess()), executions=300)
    events_of(one)
    assert one.executions == 300 and all(sum(sizes[:-1]) < 300 for sizes in waiting[2:])


def test_no_run_takes_longer_than_the_time_that_is_left(tmp_path):
    clock = Clock()
    left = []

    class Measured(InProcess):
        def run(self, data, timeout, until=math.inf):
            assert until - time.monotonic() <= 5.0 - batch[0]
            clock.now += 0.01
            left.append(5.0 - batch[0])
            return super().run(data, timeout, until)

    class Counting(SerialExecutor):
        def run(self, tasks):
            if one.phase != "seeds":  # these have one end, told at the beginning
                batch[0] = clock.now
            return super().run(tasks)

        def begin(self, task):
            batch[0] = clock.now
            super().begin(task)

    batch = [0.0]
    one = campaign(tmp_path, Counting(Measured()), seconds=5.0, clock=clock, executions=None, hang=10.0)
    events_of(one)
    assert one.ended == "the time is over" and left[0] == 5.0 and left[-1] < 1.0


def test_what_is_cut_as_the_time_is_over_is_no_hang(tmp_path):
    class Cut(InProcess):
        def run(self, data, timeout, until=math.inf):
            if data == SEED.data:
                return super().run(data, timeout, until)
            return super().run(b"stop", timeout, until)._replace(seconds=0.5 * timeout)

    one = campaign(tmp_path, SerialExecutor(Cut()), hang=1.0, executions=50)
    events_of(one)
    assert one.executions == 50 and not one.found.hangs


def test_seeds_for_which_there_is_no_time_are_told(tmp_path):
    one = campaign(tmp_path, SerialExecutor(InProcess()), seconds=0.0, executions=None)
    with pytest.raises(JobFailed, match="had not ended when the time was over") as refused:
        events_of(one)
    assert "--timeout" in refused.value.hint


def test_a_test_raises_the_score_and_its_rules(tmp_path):
    def test(member, seed, seconds):
        assert seed.data == SEED.data
        slower = len(member.data) % 2
        return Said("ok", Confirmation("Degradation" if slower else "NoChange", float(slower), "fake"))

    one = campaign(tmp_path, test=test, tests_between=True, executions=300, interesting=200)
    events_of(one)
    list(one.measure_rest(1e6))
    slower = [member for member in one.found.interesting if member.pcr]
    assert slower and all(member.score == 2 * member.icov for member in slower)
    assert sum(tally.degradations for tally in one.mutator.tallies.values())
    written = folders.write(tmp_path, one, PROGRAM, {}, 1)
    assert {found.confirmation.change for found in written.results} == {"Degradation"}
    assert [found.score for found in written.results] == sorted(
        (found.score for found in written.results), reverse=True
    )
    assert [point.value for point in written.degradations.points] == list(range(len(written.results) + 1))


def test_without_coverage_each_mutation_is_measured(tmp_path):
    measured = []

    def test(member, seed, seconds):
        measured.append(member.data)
        slower = member.data.count(b" ") > seed.data.count(b" ")
        return Said("ok", Confirmation("Degradation", float(slower), "fake", ratio=1.0 + slower))

    program = InProcess()
    one = campaign(
        tmp_path, SerialExecutor(program), test=test, coverage=False, tests_between=True, executions=60
    )
    events_of(one)
    assert program.runs == 0 and len(measured) == 60 and one.found.interesting
    assert all(member.pcr for member in one.found.interesting) and one.found.best == 2.0
    assert all(found.lines is None for found in folders.write(tmp_path, one, PROGRAM, {}, 1).results)


@pytest.mark.parametrize(("data", "code", "says"), [
    (b"crash", 0, "no seed can be used: the program was killed by SIGSEGV"),
    (b"stop", 0, "no seed can be used: the program did not end within 10 s"),
    (b"fine", 3, "fails on every seed .words.txt: status 3"),
])  # fmt: skip
def test_a_program_that_fails_on_all_seeds_is_refused(tmp_path, data, code, says):
    one = campaign(tmp_path, SerialExecutor(InProcess(code=code)))
    with pytest.raises(JobFailed, match=says):
        events_of(one, SeedFile(Path("words.txt"), data))
    assert one.executions == 0


def test_a_program_that_may_fail_is_fuzzed(tmp_path):
    one = campaign(tmp_path, SerialExecutor(InProcess(code=3)), ignore_failure=True, executions=50)
    events_of(one)
    assert one.executions >= 50


def test_nothing_that_is_counted_is_refused(tmp_path):
    one = campaign(tmp_path, SerialExecutor(InProcess(lambda data: [0, 0, 0, 0])))
    with pytest.raises(JobFailed, match="executes no line that is counted"):
        events_of(one)


def test_seeds_that_fail_are_left_out_and_named(tmp_path):
    seeds = SEED, SeedFile(Path("bad.txt"), b"crash")
    one = campaign(tmp_path, executions=20)
    began = events_of(one, *seeds)[0]
    assert list(one.found.seeds) == ["words.txt"]
    assert "no seed: bad.txt: the program was killed by SIGSEGV (Segmentation fault)" in began.notes


def test_a_program_that_is_not_deterministic_is_told(tmp_path):
    program = InProcess(lambda data: [100 + 7 * program.runs])
    began = events_of(campaign(tmp_path, SerialExecutor(program), executions=5))[0]
    assert "another number of lines for the same input (107 and 114)" in began.notes[0]


def test_results_survive_the_way_through_the_file(tmp_path):
    one = campaign(tmp_path, executions=300)
    events_of(one)
    written = folders.write(tmp_path, one, PROGRAM, {"timeout": 3.0}, 7)
    assert results.load(tmp_path) == written
    assert folders.write(tmp_path, one, PROGRAM, {"timeout": 3.0}, 7).results == written.results
    for found in written.results:
        assert len((tmp_path / found.file).read_bytes()) == found.size
        assert (tmp_path / found.diff).is_file()
    assert (tmp_path / written.seeds[0].path).read_bytes() == SEED.data
    for log in ("coverage_plot_data", "degradation_plot_data", "results_data"):
        assert (tmp_path / "logs" / f"{log}.txt").read_text().startswith("# ")


def test_results_that_lead_elsewhere_are_refused(tmp_path):
    one = campaign(tmp_path, executions=300)
    events_of(one)
    folders.write(tmp_path, one, PROGRAM, {}, 7)
    path = tmp_path / results.FILE
    first = results.load(tmp_path).results[0].file
    path.write_text(path.read_text().replace(f'"file": "{first}"', '"file": "../../secret"'))
    with pytest.raises(ProfileError, match="lies outside of its folder"):
        results.load(tmp_path)


def test_markup_in_inputs_is_text(tmp_path):
    one = campaign(tmp_path, executions=300)
    name = "<b>&.txt"
    events_of(one, SeedFile(Path(name), b"<script>alert(1)</script> \0 \xff\n"))
    written = folders.write(tmp_path, one, PROGRAM, {}, 7)
    assert written.results
    for found in written.results:
        text = (tmp_path / found.diff).read_text()
        assert "<script" not in text and "<b>&" not in text
