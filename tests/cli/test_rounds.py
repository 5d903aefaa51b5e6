"""`perun run matrix` over several versions: the runs of a job are spread over rounds of one session."""

import json
import operator
import random
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from perun.measurement.verdict import is_change
from perun.models.two_samples.sequential import nominal_levels
from perun.plugin.api import MinorVersion
from perun.profile import session
from perun.repository import walking
from perun.repository.jobs import Job, make_unit
from perun.repository.repository import Repository, open_repository
from perun.running.run.finding import Search
from perun.running.run.rounds import LOOKS, SPENDING, Rounds
from perun.running.run.schedule import ROUNDS, Share, choose, plan_slots, rounds_of, shared_last
from perun.store.summaries import profile_summary_of
from profiles import profile_of
from shared import wait_for

TIME = "{name: time, params: {warmup: 3, repeat: 10}}"
REGISTERED = "profiles: {register_after_run: true}\n"


@pytest.fixture
def history(project: Any, record: Path) -> Any:
    """Versions of a program that notes its number, and of its build, which notes it, too."""
    for number in (4, 5, 6):
        build = f"echo built-{number} >>$RECORD; echo 'echo ran-{number} >>$RECORD' > prog\n"
        project.commit(f"Version {number}", {"build.sh": build, ".gitignore": "prog\n.perun\n"})
    return project


@pytest.fixture
def configured(configure: Callable[[str], None]) -> None:
    configure(
        f"cmds: [sh prog]\ncollectors: [{TIME}]\nexecute: {{pre_run: [sh build.sh], budget: 0}}\n{REGISTERED}"
    )


def headers(project: Any, revision: str) -> list[dict[str, Any]]:
    repo = open_repository(project.path, {})
    entries = repo.store.indexes.read(repo.version(revision))
    return [json.loads(repo.store.objects.get_body(entry.checksum)) for entry in entries]


def test_runs_are_spread_over_rounds_and_versions_built_once(perun, history, record, configured) -> None:
    told = perun("run", "matrix", "--since", "HEAD~3", "--quiet-env")
    noted = Counter(record.read_text().split())
    assert {one: noted[f"built-{one}"] for one in (4, 5, 6)} == {4: 1, 5: 1, 6: 1}
    of_session = set()
    for back in range(3):
        profiles = headers(history, f"HEAD~{back}")
        by_round = {one["header"]["session"]["round"]: one["collector_info"]["params"] for one in profiles}
        assert [by_round[number]["warmup"] for number in range(ROUNDS)] == [1] + [0] * (ROUNDS - 1)
        of_session |= {one["header"]["session"]["id"] for one in profiles}
        runs = sum(one["collector_info"]["params"]["repeat"] for one in profiles)
        assert runs >= 10 and noted[f"ran-{6 - back}"] == runs + 1
    assert len(of_session) == 1
    assert told.out.count(f"registered {ROUNDS} profiles: sh prog") == 3
    assert told.out.count("since") == 2
    assert history.git("worktree", "list").count("\n") == 0


def test_each_round_has_another_place(perun, history, record, configure) -> None:
    """The file of the program, the folder that it writes to, and the size of the environment are drawn anew;
    your own files stay."""
    places = "$(pwd) $(stat -c %%i .) $(stat -c %%i prog) ${#PERUN_PADDING}"
    build = f"printf '#!/bin/sh\\n: >made; rm made; echo {places} >>$RECORD\\n' >prog\n"
    for number in range(2):
        history.commit(f"Note places {number}", {"build.sh": f"{build}chmod +x prog\n# {number}\n"})
    own = history.path / "prog"
    own.write_text("mine")
    pre_run = "execute: {pre_run: [sh build.sh], budget: 0}\n"
    configure(f"cmds: [./prog]\ncollectors: [{TIME}]\n{pre_run}{REGISTERED}")
    perun("run", "matrix", "--since", "HEAD~2", "--no-share", "--quiet-env")
    noted = [line.split() for line in record.read_text().splitlines()]
    # The number of a file that is gone may be taken again.
    for number in (1, 2):
        folders = Counter(path for path, _ in {(one[0], one[number]) for one in noted})
        assert len(folders) == 2 and min(folders.values()) > 1 and str(history.path) not in folders
    assert len({size for *_, size in noted}) > ROUNDS
    assert own.read_text() == "mine"


def test_what_a_run_says_is_what_the_history_says(perun, history, configured) -> None:
    perun("run", "-m", "HEAD~1", "matrix", "--since", "HEAD~3", "--budget", "0")
    told = perun("run", "matrix", "--since", "HEAD~2", "--budget", "1", "--json").json
    results = {one["minor_version"]: one for one in told["results"]}
    assert len(results) == 2
    for one in perun("log", "--json").json["versions"][:2]:
        (value,) = one["values"]
        own = results[one["checksum"]]
        assert (value["measured"], value["difference"]) == (own["measured"], own["difference"])


def test_a_single_version_is_measured_beside_the_one_before(perun, history, record, configured) -> None:
    perun("run", "-m", "HEAD~2", "matrix")
    assert len(headers(history, "HEAD~2")) == 1  # there is none before it
    record.write_text("")
    told = perun("run", "matrix", "--quiet-env")
    before = history.git("rev-parse", "--short=10", "HEAD~2")
    assert f"measured beside {before}" in told.err
    assert [len(headers(history, f"HEAD~{back}")) for back in range(3)] == [ROUNDS, 0, 1 + ROUNDS]
    record.write_text("")
    alone = perun("run", "matrix", "--alone", "--quiet-env")
    assert alone.err == ""
    assert record.read_text().split() == ["built-6", *["ran-6"] * 13]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_complete_rounds_are_kept_and_the_rest_is_run(
    perun, history, record, configure, start, number
) -> None:
    enough = "test -e $RECORD.there || test $(wc -l <$RECORD) -lt 20"
    wait = f"sh -c 'sh prog; {enough} || {{ : >$RECORD.there; exec sleep 100; }}'"
    build = "execute: {budget: 0, pre_run: [sh build.sh]}\n"
    configure(f"cmds: [{json.dumps(wait)}]\ncollectors: [{TIME}]\n{REGISTERED}{build}")
    run = start("run", "matrix", "--since", "HEAD~2", "--quiet-env")
    wait_for(lambda: record.with_name("record.there").exists())
    run.send_signal(number)
    run.communicate(timeout=120)
    kept = [headers(history, f"HEAD~{back}") for back in range(2)]
    assert sum(map(len, kept)) >= 2
    record.write_text("")
    told = perun("run", "matrix", "--resume", "--json").json
    after = [headers(history, f"HEAD~{back}") for back in range(2)]
    sessions = [[one["header"]["session"] for one in own] for own in after]
    assert [sorted(one["round"] for one in own) for own in sessions] == [list(range(ROUNDS))] * 2
    assert len({one["id"] for own in sessions for one in own}) == 1
    assert [one["rounds"] for one in told["results"]] == [ROUNDS] * 2
    assert len(told["profiles"]) == 2 * ROUNDS - sum(map(len, kept))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1, 51, 10))
def test_a_kill_at_fifty_places_loses_nothing(perun, history, record, configured, start, first) -> None:
    """Each visit before the kill is kept, the rest is run once, and the working tree is as it was."""
    known: set[str] = set()
    for place in range(first, first + 10):
        record.write_text("")
        run = start("run", "matrix", "--since", "HEAD~2", "--quiet-env")
        wait_for(
            lambda run=run, place=place: len(record.read_text().split()) >= place or run.poll() is not None
        )
        run.kill()
        run.communicate(timeout=120)
        kept = sessions_of(history, known)
        perun("run", "matrix", "--resume", check=False)  # it may have been done
        whole = sessions_of(history, known)
        assert kept <= whole and len({one for one, *_ in whole}) == 1
        assert sorted(whole.values()) == [1] * 2 * ROUNDS, place
        known |= {one for one, *_ in whole}
        assert history.git("status", "--porcelain") == ""
        assert history.git("worktree", "list").count("\n") == 0


def sessions_of(project: Any, known: set[str]) -> Counter[tuple[str, int, int]]:
    """How many profiles there are of each session that is not known, version and round."""
    noted = [
        (back, one["header"]["session"]) for back in range(2) for one in headers(project, f"HEAD~{back}")
    ]
    return Counter((one["id"], back, one["round"]) for back, one in noted if one["id"] not in known)


def test_what_fails_is_not_tried_in_each_round(perun, history, record, configure) -> None:
    configure(f"cmds: ['sh -c \"sh prog; grep -q -v 5 build.sh\"']\ncollectors: [{TIME}]\n"
              "execute: {pre_run: [sh build.sh], budget: 0}\n")  # fmt: skip
    told = perun("run", "matrix", "--since", "HEAD~3", code=8)
    assert record.read_text().split().count("ran-5") == 1
    assert told.err.count("1 job failed") == 1
    assert told.out.count("stored 5 profiles") == 2


def test_builds_that_take_too_much_room_are_told(perun, history, record, configure) -> None:
    build = "execute: {pre_run: [sh build.sh], budget: 0, build_cache: 0.001}\n"
    configure(f"cmds: [sh prog]\ncollectors: [{TIME}]\n{build}")
    history.write({"more": ""})
    told = perun("run", "--in-a-copy", "matrix", "--since", "HEAD~3")
    # At least one of three versions is built in each round where there is room for two.
    assert sum(one.startswith("built") for one in record.read_text().split()) >= 3 + ROUNDS - 1
    assert told.out.count("set it to more MiB with: perun config set execute.build_cache") == 1


@pytest.mark.parametrize(("options", "said"), [
    (["--budget", "3", "--rounds", "2"], "--budget does not go with --rounds"),
    (["--budget", "3", "--on", "local:2"], "--budget does not go with --on"),
    (["--budget", "-1"], "-1"),
])  # fmt: skip
def test_contradicting_options(perun, history, configured, options, said) -> None:
    assert said in perun("run", "matrix", *options, code=2).err


# -- when a session ends, by made numbers --------------------------------------------------------------------


class Machine:
    """Measures made times of each version, which scatter as the machine is told, and tells the time."""

    def __init__(self, seed: int, between: float, visit: float, within: float) -> None:
        self.rng = random.Random(seed)
        self.seconds = 0.0
        self._between, self._visit, self._within = between, visit, within
        self._rounds: dict[int, float] = {}

    def measure(self, level: float, round: int) -> Any:
        self.seconds += 0.05
        shift = self._rounds.setdefault(round, self.rng.gauss(0, self._between))
        shift += self.rng.gauss(0, self._visit)
        times = [level * self.rng.lognormvariate(shift, self._within) for _ in range(2)]
        return profile_of([
            {"amount": one, "subtype": "real", "uid": "./app", "order": order}
            for order, one in enumerate(times, 1)
        ], machine={})  # fmt: skip


def measured(
    repo: Repository,
    levels: list[float],
    machine: Machine,
    budget: float,
    versions: list[MinorVersion] | None = None,
    copies: Mapping[int, int] = MappingProxyType({}),
    beside: float = 0.0,
) -> Rounds:
    """A session over versions, newest first, by default all there are, that take so many seconds each.

    :param copies: the places of versions that share the measurement of another one, and its place.
    :param beside: seconds between two visits.
    """
    versions = versions or choose(repo, [], True)[: len(levels)]
    job = Job("./app", "", "", make_unit(repo, "collect", "time", {}, "the test"))
    slots = plan_slots([job], versions, rounds_of, machine.rng)
    shares = {
        (versions[place].checksum, id(job)): Share(versions[of].checksum, "all files are the same")
        for place, of in copies.items()
    }
    found = Rounds(repo, slots, versions, budget, f"s{machine.rng.random()}", shares=shares, rng=machine.rng)
    slots = shared_last(slots, shares)
    visits: dict[tuple[str, int], Any] = {}
    level = {version.checksum: one for version, one in zip(versions, levels, strict=True)}
    while slots:
        for slot in slots:
            for task in slot.tasks:
                version = slot.version.checksum
                share = found.share_of(version, job)
                own = share or found.source(version, job) or Share("")
                if share is None:
                    visits[version, task.round] = machine.measure(level[version], task.round)
                profile = visits[version if share is None else share.version, task.round]
                noted = session.Session(found.id, "", task.round, False, found.levels(task.round), {}, *own)
                session.mark(profile, noted)
                found.learn(version, task.job, profile, 0.05 if share is None else None)
                found.spend(beside)
        slots = found.more()
    return found


def words(found: Rounds) -> list[tuple[int, str]]:
    return [
        (one.rounds, one.judged.verdict.change.name if one.judged and one.judged.verdict else "")
        for one in found.known()
    ]


@pytest.fixture
def repo(project: Any) -> Repository:
    return open_repository(project.path, {})


def test_rounds_go_on_where_neighbours_are_not_settled(repo) -> None:
    machine = Machine(1, between=0.1, visit=0.012, within=0.012)
    newest, middle, oldest = words(measured(repo, [0.18, 0.1031, 0.1], machine, 20))
    assert newest == (ROUNDS, "SevereDegradation")
    assert middle[0] == oldest[0] > ROUNDS and middle[1] == "Degradation"
    assert [rounds for rounds, _ in words(measured(repo, [0.18, 0.1031, 0.1], machine, 0))] == [ROUNDS] * 3


def test_what_is_measured_again_is_shared_again(repo) -> None:
    """The middle one is a copy of the oldest: it has the same rounds, and takes no part of the budget."""
    machine = Machine(1, between=0.1, visit=0.012, within=0.012)
    newest, middle, oldest = words(measured(repo, [0.1031, 0.1, 0.1], machine, 20, copies={1: 2}))
    assert newest[0] == middle[0] == oldest[0] > ROUNDS
    assert (newest[1], middle[1]) == ("Degradation", "NoChange")
    assert machine.seconds == pytest.approx(0.05 * 2 * newest[0])
    machine = Machine(3, between=0.1, visit=0.05, within=0.05)
    measured(repo, [0.1, 0.1, 0.1], machine, 0.3, copies={1: 2})
    assert machine.seconds == pytest.approx(2 * 0.3)


def test_the_budget_ends_it(repo) -> None:
    """What lies between visits counts as they do."""
    machine = Machine(2, between=0.1, visit=0.05, within=0.05)
    measured(repo, [0.1, 0.1, 0.1], machine, 0.5)
    assert 3 * 0.45 <= machine.seconds <= 3 * 0.5
    machine = Machine(2, between=0.1, visit=0.05, within=0.05)
    measured(repo, [0.1, 0.1, 0.1], machine, 1.0, beside=0.05)
    assert 3 * 0.45 <= machine.seconds < 3 * 0.55
    machine = Machine(2, between=0.1, visit=0.05, within=0.05)
    assert max(rounds for rounds, _ in words(measured(repo, [0.1] * 3, machine, 1e6))) <= LOOKS[-1]


def test_what_ends_by_its_time_spends_the_rest_of_the_level(repo) -> None:
    """Of the profiles of the last round, and of no other."""
    machine = Machine(2, between=0.1, visit=0.05, within=0.05)
    found = measured(repo, [0.1, 0.1, 0.1], machine, 1.0)
    (last,) = {one.rounds for one in found.known()}
    own = [found.levels(round) for round in range(last)]
    looks = [look for look in LOOKS if look < last]
    ended = nominal_levels(0.01, [*looks, last], LOOKS[-1], SPENDING, ends=True)[-1]
    assert own[-1] is not None and own[-1][0] == pytest.approx(ended)
    assert own[-2] is not None and own[-2][0] < ended
    assert not found.more()


@pytest.mark.parametrize("many", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_changes_of_a_long_history_are_found_by_few_builds(repo, project, many) -> None:
    commits = "".join(
        f"commit refs/heads/main\nmark :{n}\ncommitter P <p@p> {1_700_000_000 + n} +0000\ndata 2\nv\n"
        + (f"from :{n - 1}\n" if n > 1 else "") + "\n"
        for n in range(1, many + 1)
    )  # fmt: skip
    project.git("checkout", "-q", "--detach")
    into = ["git", "fast-import", "--quiet", "--force"]
    subprocess.run(into, cwd=project.path, input=commits, text=True, check=True)
    line = list(walking.first_parents(repo, repo.version("main")))[::-1]
    steps = {many // 7: 1.1, many // 2: 0.9, many // 2 + 1: 1.07, many - 3: 1.05}
    levels = list(accumulate((steps.get(place, 1.0) for place in range(many)), operator.mul, initial=0.1))[1:]
    level = {version.checksum: one for version, one in zip(line, levels, strict=True)}
    search = Search(line)
    while versions := search.session():
        machine = Machine(search.measured, between=0.03, visit=0.005, within=0.005)
        found = measured(repo, [level[one.checksum] for one in versions], machine, 20, versions)
        search.learn(found.known())
    places = [line.index(one.version) for one in search.found()]
    assert set(places) == steps.keys() and len(places) == len(steps)
    assert all(one.judged.verdict and is_change(one.judged.verdict) for one in search.found())
    assert search.measured <= min(60, many // 4) and search.undecided <= 2
    noisy, search = Machine(1, between=0.1, visit=0.5, within=0.1), Search(line)
    versions = search.session()
    search.learn(measured(repo, [0.1] * len(versions), noisy, 0, versions).known())
    assert (search.session(), search.found(), search.undecided) == ([], [], len(versions) - 1)


def test_finding_changes_by_the_command(perun, history, record, configured) -> None:
    broken = {"build.sh": "exit 1\n"}
    history.commit("Break the build", broken)
    history.commit("Mend it", {"build.sh": "echo built-8 >>$RECORD; echo 'sleep 0.1; echo ran-8' > prog\n"})
    told = perun("run", "matrix", "--find-changes", "--since", "HEAD~4", "--quiet-env", "--json", code=8)
    one = told.json["changes"][0]  # what else may be told of quick programs is a matter of clocks
    assert one["minor_version"] == history.git("rev-parse", "HEAD").strip() and one["between"] == 1
    assert one["since"] == history.git("rev-parse", "HEAD~2").strip()
    assert one["difference"]["verdict"] == "SevereDegradation"
    text = perun("run", "matrix", "--find-changes", "--since", "HEAD~2", "--quiet-env").out
    assert re.search(r"change.? found by measuring 2 versions of 3", text)
    assert "1 version before it cannot be measured: the change may be in any of them" in text
    for option in ("--missing", "--dry-run", "--resume"):
        said = perun("run", "matrix", "--find-changes", option, code=2).err
        assert f"--find-changes does not go with {option}" in said


@pytest.mark.slow
def test_looking_often_costs_no_false_alarms(repo, project) -> None:
    for number in range(9):
        project.commit(f"More {number}")
    false, found, pairs = 0, 0, 0
    for seed in range(100):
        machine = Machine(seed, between=0.02, visit=0.02, within=0.03)
        session_ = measured(repo, [0.1] * 6 + [0.106] * 6, machine, 10)
        verdicts = [one.judged.verdict for one in session_.known() if one.judged and one.judged.verdict]
        assert len(verdicts) == 11
        step = verdicts.pop(5)
        found += is_change(step) and step.difference.ratio < 1
        false += sum(map(is_change, verdicts))
        pairs += len(verdicts)
    assert false <= 3, (false, pairs)  # 0.3 % of 1000; the level is 1 %
    assert found >= 80


def test_changes_of_many_benchmarks_that_chance_explains_are_not_definite(repo) -> None:
    """Of 150 equal ones and one that is slower only that one is."""
    rng, unit = random.Random(42), make_unit(repo, "collect", "time", {}, "the test")
    jobs = [Job("made", f"b{number}", "", unit, is_benchmark=True) for number in range(151)]
    versions = choose(repo, [], True)[:2]
    newer = versions[0]
    found = Rounds(repo, [], versions, 20, "s")
    found.add({one.checksum: jobs for one in versions}, ROUNDS, 1)

    def take(job: Job, version: MinorVersion, number: int) -> None:
        cost = 2.5 if version is newer and job is jobs[-1] else 1.0
        profile = profile_of([{"amount": cost * rng.lognormvariate(0, 0.1), "uid": job.args}], machine={})
        session.mark(profile, session.Session("s", round=number))
        found.take(version.checksum, job, profile_summary_of(profile), 0.001)

    for number in range(LOOKS[1]):
        for job in jobs:
            for version in versions:
                take(job, version, number)
    verdicts = {one.job.args: one.judged.verdict for one in found.known() if one.version is newer}
    changed = [name for name, verdict in verdicts.items() if verdict and is_change(verdict)]
    by_chance = found.by_chance()
    assert len(changed) > 1 and set(changed) == {"b150"} | {
        job.args for job in jobs if (newer.checksum, id(job)) in by_chance
    }
    (share,) = set(by_chance.values())
    assert share == 1 / 151
    assert found.levels(LOOKS[1] - 1, share)[0] < found.levels(LOOKS[1] - 1)[0] / 100
    found.more()
    assert {(newer.checksum, key) for _, key in by_chance} <= found.open
