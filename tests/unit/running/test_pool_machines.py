"""Machines of a pool: their speed and noise, generated files, which job each gets, their lock and names."""

import fcntl
import io
import itertools
import os
import random
import shlex
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from perun.cli.commands.doctor import noise_data, noise_lines
from perun.core import conditions
from perun.core.conditions import Moment
from perun.core.config.layers import Config
from perun.core.errors import ConfigError, JobFailed, NotPerunRepository, UsageError
from perun.plugin.api import MinorVersion
from perun.repository import workloads
from perun.repository.init import init
from perun.repository.jobs import Job, PluginConfig
from perun.repository.repository import Repository, open_repository
from perun.repository.workloads import Input
from perun.running import doctor
from perun.running.pool import orders, places
from perun.running.pool.engine import Worker
from perun.running.pool.folders import MachineLock
from perun.running.pool.leases import EVERY, Inspector, Lease, Reservations
from perun.running.pool.places import (
    Calibration,
    DaskPlace,
    Host,
    KnownMachines,
    LocalPlace,
    Place,
    SshPlace,
    judged,
    measure,
    parsed,
)
from perun.running.run.schedule import VersionSlot, plan_slots

QUIET = Calibration(0.007, 0.0, 0.0, 4)
BUSY = QUIET._replace(others=1.0)
START = Moment(0, 0, 0.0, 100.0, 50.0)


def after(elapsed: float, busy: float) -> Moment:
    return START._replace(clock=START.clock + elapsed, busy=START.busy + busy)


@pytest.mark.parametrize(("times", "elapsed", "busy", "expected", "words"), [
    ([(0.100, 0.099)] * 5, 0.5, 0.515, Calibration(0.099, 0.01, 0.04, 4), ""),
    # Another program has a processor of its own: nothing waits, and yet the machine is busy.
    ([(0.100, 0.1)] * 5, 0.5, 1.0, Calibration(0.1, 0.0, 1.0, 4), "need 1.0 of its 4 processors"),
    # Two programs share one processor, as in a container that is allowed one.
    ([(0.1, 0.05)] * 4 + [(0.1, 0.04)], 0.5, 0.26, Calibration(0.04, 0.52, 0.04, 4), "for 52 % of its"),
    # The system does not tell; clocks differ a little.
    ([(0.100, 0.101)] * 5, 0.5, 0.0, Calibration(0.101, 0.0, 0.0, 4), ""),
])  # fmt: skip
def test_what_is_busy(times, elapsed, busy, expected, words) -> None:
    own = sum(cpu for _, cpu in times)
    found = judged(times, START, after(elapsed, busy), own, 4)
    assert found == expected
    assert words in found.busy
    assert bool(found.busy) == bool(words)


def test_counters_of_the_system(tmp_path: Path) -> None:
    second = os.sysconf("SC_CLK_TCK")
    fields = [3 * second, second, 2 * second, 500 * second, 70 * second, second, second, 4 * second, 9, 9]
    (tmp_path / "stat").write_text(f"cpu  {' '.join(map(str, fields))}\ncpu0 1 2 3\n")
    found = conditions.now(tmp_path)
    assert (found.busy, found.steal, found.ticks) == (12.0, 4 * second, 582 * second)
    assert conditions.now(tmp_path / "missing").busy == 0.0


@pytest.fixture
def busy_loop() -> Iterator[None]:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        yield
        process.kill()


@pytest.mark.usefixtures("busy_loop")
def test_a_real_calibration(tmp_path: Path) -> None:
    name = f"calibrated-{os.getpid()}"
    found = measure({**os.environ, "PERUN_POOL_MACHINE": name, "XDG_CACHE_HOME": str(tmp_path)})
    assert found.seconds > 0
    assert 0 <= found.waited < 1
    assert 0 <= found.others <= 1.1 * found.processors
    assert found.processors == os.cpu_count()


def test_a_busy_machine_is_no_reference_for_ever(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    init(tmp_path, os.environ)
    known = KnownMachines(open_repository(tmp_path, os.environ))
    slow_busy = BUSY._replace(seconds=0.014)
    assert known.drift("a", "x86", slow_busy) == 0  # it is noted
    assert known.drift("a", "x86", BUSY._replace(seconds=0.028)) == pytest.approx(100)
    assert known.drift("a", "x86", QUIET) == 0  # it is noted anew
    assert known.drift("a", "x86", slow_busy) == pytest.approx(100)
    assert known.drift("a", "x86", QUIET._replace(seconds=0.0077)) == pytest.approx(10)
    assert known.drift("a", "another processor", slow_busy) == 0


class Answers:
    """What the only worker of a pool answers, one after the other."""

    def __init__(self, *answers: object) -> None:
        self.left = list(answers)

    def call(self, address: str, function: object) -> object:
        return self.left.pop(0)


def test_a_machine_that_has_become_slower_is_set_aside(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    init(tmp_path, os.environ)
    now = [0.0]
    inspector = Inspector(open_repository(tmp_path, os.environ), 5.0, clock=lambda: now[0])
    pool: Any = Answers(None, QUIET, QUIET._replace(seconds=1.1 * QUIET.seconds))
    worker = Worker("tcp://a", "a", "1", "3", "x86")
    for left in (2, 1, 1):  # it is gone, it answers, and it is not asked again so soon
        assert list(inspector.look(pool, [worker])) == [] and len(pool.left) == left
    now[0] += EVERY
    (told,) = inspector.look(pool, [worker])
    assert told.serious and inspector.aside == {"a"} and pool.left == []


# -- the noise of real runs ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured() -> doctor.NoiseReport:
    """Each look at the clock takes a second, two of them a pair."""
    ticks = itertools.count()
    return doctor.measure(dict(os.environ), 41, 0.001, rng=random.Random(1), clock=lambda: float(next(ticks)))


def test_pairs_are_measured_until_the_budget_is_spent(measured: doctor.NoiseReport) -> None:
    assert 15 <= measured.pairs <= 25
    assert 0 <= measured.disturbed <= measured.pairs
    wall, cpu = measured.clocks
    assert (wall.name, cpu.name) == ("wall", "cpu")
    for clock in measured.clocks:
        assert clock.median > 0
        assert clock.ratio.sizes == (measured.pairs, measured.pairs)
        assert clock.ratio.low <= clock.ratio.estimate <= clock.ratio.high
        needed = [effect.pairs or 1000 for effect in clock.effects]
        assert needed == sorted(needed, reverse=True), "larger changes need fewer pairs"


def test_ten_pairs_are_measured_whatever_the_budget() -> None:
    seen: list[tuple[str, int, int]] = []
    assert doctor.measure(dict(os.environ), 1e-6, 0.001, report=lambda *step: seen.append(step)).pairs == 10
    assert [done for _, done, _ in seen] == list(range(11))


def test_a_run_that_takes_no_time_is_refused() -> None:
    with pytest.raises(UsageError, match="--length"):
        doctor.measure({}, 1, 0)


def test_the_answers_have_all_of_it(measured: doctor.NoiseReport) -> None:
    data = noise_data(measured)
    assert (data["schema"], data["pairs"], len(data["clocks"])) == ("perun.noise/1", measured.pairs, 2)
    assert [effect["share"] for effect in data["clocks"][0]["effects"]] == list(doctor.EFFECTS)
    text = "\n".join(noise_lines(measured))
    assert f"{measured.pairs} pairs of runs of the same program" in text
    assert "    1%   wall: " in text and "   25%   wall: " in text
    for condition in measured.conditions:
        assert condition.message in text


# -- generated files -----------------------------------------------------------------------------------------


OLD = 1_000_000_000


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    """A repository, of which only the folder matters."""
    return Repository(tmp_path, tmp_path, Config(()), {})


def archive(*members: tuple[str, bytes]) -> bytes:
    """An archive of files with these names; one without content is a link to `/etc/passwd`."""
    file = io.BytesIO()
    with tarfile.TarFile(fileobj=file, mode="w") as made:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            if not content:
                member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
            made.addfile(member, io.BytesIO(content))
    return file.getvalue()


def name_of(folder: Path, *members: tuple[str, bytes]) -> str:
    """What a folder with these files is called."""
    for name, content in members:
        path = folder / "sample" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return f"words-{workloads.checksum_of(folder / 'sample')}"


def test_pieces_of_an_archive_become_the_files(repo: Repository, tmp_path: Path) -> None:
    members = (("a.txt", b"one"), ("in/b.txt", b"two"))
    name, data = name_of(tmp_path, *members), archive(*members)
    store = orders.MachineFiles(repo)
    old = orders.home(repo) / "old-0123456789ab"
    old.mkdir()
    os.utime(old, (OLD, OLD))
    store.add_piece(name, 0, data[:999], False)  # it was interrupted, and begins anew
    for start in range(0, len(data), 700):
        assert not store.has(name)
        store.add_piece(name, start, data[start : start + 700], start + 700 >= len(data))
    assert store.has(name)
    store.check(name)
    assert (orders.home(repo) / name / "in/b.txt").read_bytes() == b"two"
    assert sorted(path.name for path in orders.home(repo).iterdir()) == [name]
    # What a program has changed is not measured with.
    (orders.home(repo) / name / "a.txt").write_bytes(b"other")
    with pytest.raises(JobFailed, match="were changed or removed"):
        store.check(name)
    assert not store.has(name)  # it is sent again


@pytest.mark.parametrize("member", [("../a", b"x"), ("/tmp/a", b"x"), ("a", b"")])
def test_an_archive_that_leads_elsewhere(repo: Repository, tmp_path: Path, member: tuple[str, bytes]) -> None:
    with pytest.raises(UsageError, match="cannot be a generated file"):
        orders.MachineFiles(repo).add_piece("words-0123456789ab", 0, archive(member), True)


@pytest.mark.parametrize("name", ["", "..", "/etc", "a/b", "."])
def test_a_name_that_leads_elsewhere(repo: Repository, name: str) -> None:
    with pytest.raises(UsageError, match="names no folder"):
        orders.MachineFiles(repo).has(name)


def test_files_that_are_not_those_of_the_name(repo: Repository, tmp_path: Path) -> None:
    name = name_of(tmp_path, ("a.txt", b"one"))
    with pytest.raises(UsageError, match="are not those of"):
        orders.MachineFiles(repo).add_piece(name, 0, archive(("a.txt", b"two")), True)
    with pytest.raises(UsageError, match="is no archive"):
        orders.MachineFiles(repo).add_piece(name, 0, b"no archive" * 100, True)
    assert not orders.MachineFiles(repo).has(name)


@pytest.mark.parametrize("start", ["", "< "])
def test_an_input_names_the_same_file_elsewhere(repo: Repository, tmp_path: Path, start: str) -> None:
    other = Repository(tmp_path / "it's", tmp_path, Config(()), {})
    file = orders.home(other) / "words-0123456789ab" / "a b.txt"
    one = Input(start + shlex.quote(str(file)), 3)
    written = orders.described(other, one)
    assert orders.folder_of(written) == "words-0123456789ab"
    assert orders.input_of(other, written) == one
    assert str(orders.home(repo)) in orders.input_of(repo, written).text


@pytest.mark.parametrize("text", ["12", "a 'b", "/etc/passwd", "< /etc/passwd", ""])
def test_any_other_input_stays_as_it_is(repo: Repository, text: str) -> None:
    written = orders.described(repo, Input(text, 1))
    assert written == [text, 1]
    assert orders.folder_of(written) is None
    assert orders.input_of(repo, written) == Input(text, 1)


# -- which machine gets which job ----------------------------------------------------------------------------


JOBS = [Job("prog", f"a{number}", "", PluginConfig("time", None)) for number in range(3)]
VERSIONS = [MinorVersion("", "", "", f"{number:040x}", "", ()) for number in range(4)]


def worker(address: str, machine: str) -> Worker:
    return Worker(address, machine, "1", "3.11", "cpu")


def slots(rounds: int = 1) -> list[VersionSlot]:
    return plan_slots(JOBS, VERSIONS, rounds, random.Random(1))


def all_leased(leases: Reservations, workers: list[Worker]) -> list[Lease]:
    """Lease and end everything, each worker one task at a time; the leases in their order."""
    found = []
    while not leases.is_done:
        while (lease := leases.next_lease(workers)) is not None:
            found.append(lease)
        leases.end(next(iter(leases.held.values())))
    return found


def test_each_task_once_and_each_series_on_one_machine() -> None:
    workers = [worker("1", "a"), worker("2", "b"), worker("3", "b")]
    found = all_leased(Reservations(slots(rounds=2), {}), workers)
    assert sorted(lease.wanted.number for lease in found) == list(range(3 * 4 * 2))
    machines = {(lease.wanted.job.args, lease.worker.machine) for lease in found}
    assert len(machines) == len(JOBS)
    for job in JOBS:  # as interleaved as the schedule
        numbers = [lease.wanted.number for lease in found if lease.wanted.job is job]
        assert numbers == sorted(numbers)


def test_a_series_goes_on_where_it_was() -> None:
    workers = [worker("1", "a"), worker("2", "b")]
    leases = Reservations(slots(), {repr(JOBS[0]): "b", repr(JOBS[1]): "b"})
    machines = {lease.wanted.job.args: lease.worker.machine for lease in all_leased(leases, workers)}
    assert machines == {"a0": "b", "a1": "b", "a2": "a"}


def test_a_lost_task_comes_next() -> None:
    leases = Reservations(slots(), {})
    there = [worker("1", "a"), worker("2", "a")]
    first, second = leases.next_lease(there), leases.next_lease(there)
    assert first is not None
    assert second is not None
    assert leases.next_lease(there) is None
    assert leases.lost({"2"}) == [first]
    leases.give_back(first)
    again = leases.next_lease(there)
    assert again is not None
    assert (again.wanted, again.attempt) == (first.wanted, 2)
    leases.give_back(again, counted=False)
    third = leases.next_lease(there)
    assert third is not None
    assert third.attempt == 2


def test_what_a_machine_leaves_behind_is_given_to_others() -> None:
    leases = Reservations(slots(), {})
    lease = leases.next_lease([worker("1", "a")])
    assert lease is not None
    leases.end(lease)
    other = worker("2", "b")
    (stranded,) = leases.stranded({"b"})
    stranded.machine = ""
    assert {one.worker.machine for one in all_leased(leases, [other])} == {"b"}


def test_a_version_that_cannot_be_built_is_left_out() -> None:
    leases = Reservations(slots(), {})
    assert [one.number for one in leases.drop(VERSIONS[1].checksum)] == [3, 4, 5]
    found = all_leased(leases, [worker("1", "a")])
    assert VERSIONS[1] not in {lease.wanted.version for lease in found}
    assert len(found) == 9


# -- the lock of a machine -----------------------------------------------------------------------------------


HOLDER = """
import sys, time
from pathlib import Path
from perun.plugin.api import Run
from perun.running.pool.folders import MachineLock
from perun.core.process.execution import Execution

lock = MachineLock("m", Path(sys.argv[1]))
lock.alone()
program = "-c 'echo $$ >program; exec sleep 600'"
run = Run("sh", program, cwd=Path(sys.argv[1]), environ={"PATH": "/usr/bin:/bin"})
with Execution(run, Path(sys.argv[1])) as execution:
    execution.record()
"""


def is_free(path: Path) -> bool:
    """Whether nobody holds the lock in any way."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def test_builds_share_it(tmp_path: Path) -> None:
    one, other = MachineLock("m", tmp_path), MachineLock("m", tmp_path)
    with one.shared(), other.shared():
        assert not is_free(one.path)
    other.alone()
    assert not is_free(one.path)
    other.release()
    assert is_free(one.path)
    one.close()
    other.close()


def test_it_is_held_until_the_measured_program_is_killed(tmp_path: Path) -> None:
    """The process of a job is killed:

    the lock is free when the guard has killed the program, and not before.
    """
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)])
    companion = None
    try:
        noted = tmp_path / "program"
        while not noted.exists() or not noted.read_text().strip():
            assert holder.poll() is None
        program = psutil.Process(int(noted.read_text()))
        guards = [one for one in psutil.Process(holder.pid).children() if one.name() == "perun_guard"]
        guards[0].suspend()
        # Else its group is left without a parent by the end of the holder, and the kernel resumes it.
        companion = subprocess.Popen(["sleep", "600"], process_group=guards[0].pid)
        holder.kill()
        holder.wait()
        lock = MachineLock("m", tmp_path)
        assert not is_free(lock.path)
        assert program.is_running()
        guards[0].resume()
        lock.alone()
        program.wait(60)
        lock.close()
    finally:
        for one in filter(None, (holder, companion)):
            one.kill()
            one.wait()


def test_a_link_is_no_lock(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    (tmp_path / "perun-pool-m.lock").symlink_to(tmp_path / "other")
    with pytest.raises(NotPerunRepository, match="cannot be the lock"):
        MachineLock("m", tmp_path)


# -- what names a pool ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "place"), [
    ("local:3", LocalPlace(3)),
    ("local", LocalPlace(2)),
    ("dask://farm:8786", DaskPlace("tcp://farm:8786", False)),
    ("dask://[::1]:8786/", DaskPlace("tcp://[::1]:8786", False)),
    ("dask+tls://farm.example.org:1", DaskPlace("tls://farm.example.org:1", True)),
    ("ssh:my hosts.yml", SshPlace(Path("my hosts.yml"))),
])  # fmt: skip
def test_what_names_a_pool(text: str, place: Place) -> None:
    assert parsed(text) == place


@pytest.mark.parametrize(
    "text",
    ["", "local:", "local:0", "local:65", "local:-1", "local:2x", "dask://farm", "dask://farm:0", "dask://farm:65536",
     "dask://-oProxy:1", "dask://me:secret@farm:1", "tcp://farm:1", "ssh:", "ssh"],
)  # fmt: skip
def test_what_names_none(text: str) -> None:
    with pytest.raises(UsageError):
        parsed(text)


@pytest.mark.parametrize(("text", "exposed"), [
    ("dask://localhost:1", False),
    ("dask://127.0.0.1:1", False),
    ("dask://[::1]:1", False),
    ("dask://127.0.0.1.example.org:1", True),
    ("dask://farm:1", True),
    ("dask+tls://farm:1", False),
])  # fmt: skip
def test_who_may_read_along(text: str, exposed: bool) -> None:
    place = parsed(text)
    assert isinstance(place, DaskPlace)
    assert place.exposed is exposed


def test_a_file_of_hosts(tmp_path: Path) -> None:
    file = tmp_path / "hosts.yml"
    file.write_text("hosts:\n- bench1\n- {host: me@bench2, python: /opt/python}\n")
    assert places.read(file) == [Host("bench1"), Host("me@bench2", "/opt/python")]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "hosts: []", "hosts: bench", "hosts: [-oProxyCommand=x]", "hosts: [{python: x}]",
     "hosts: ['a b']", "hosts: [{host: a, port: 1}]", "machines: [a]", "hosts: [a"],
)  # fmt: skip
def test_a_file_of_no_hosts(tmp_path: Path, text: str) -> None:
    file = tmp_path / "hosts.yml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"hosts\.yml"):
        places.read(file)
    with pytest.raises(ConfigError, match=r"absent\.yml"):
        places.read(tmp_path / "absent.yml")


@pytest.mark.parametrize(("text", "message"), [
    (b"hosts: [{host: a, pyhton: x}]", "the machine 'a': unknown key 'pyhton'; known: host, python"),
    (b"hosts: [a]\nuser: me", "unknown key 'user'; known: hosts"),
    (b"hosts: [3]", "3 is no machine"),
    (b"\xff\xfe", "it is no text in UTF-8"),
    (b"hosts: []", "no machine is listed"),
])  # fmt: skip
def test_what_is_wrong_with_a_file_of_hosts(tmp_path: Path, text: bytes, message: str) -> None:
    file = tmp_path / "hosts.yml"
    file.write_bytes(text)
    with pytest.raises(ConfigError) as raised:
        places.read(file)
    assert message in raised.value.message
    assert raised.value.hint.startswith("e.g. hosts: [bench1")
