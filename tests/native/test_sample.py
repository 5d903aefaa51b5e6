"""Samples of real programs whose functions spend known shares of the CPU time."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perun.collect.sample.collector import SAMPLER, SampleCollector, SampleParams, refusal, words_of
from perun.collect.sample.records import MOMENT, read, within
from perun.core.errors import CollectorUnavailable, JobFailed
from perun.plugin.api import CollectContext, Run
from perun.profile.factory import Profile
from perun.profile.incomplete import text_of
from perun.profile.island import timeline_of, usage_of
from perun.view.timeline import pieces_of
from shares import outside

SHARES = {"tenth": 0.1, "fifth": 0.2, "third": 0.3, "most": 0.4}
ATTEMPTS = 3
"""A share is outside of its interval in one of 100 runs; four of them in each of three runs hardly ever."""
FREQUENCY = 1499

why, _ = refusal() if SAMPLER.is_file() else ("the sampler was not built", "")
pytestmark = pytest.mark.skipif(bool(why), reason=why)


class Sampled:
    """What a profile says: samples by function, and of the recording as a whole."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.facts: dict[str, Any] = profile["collector_info"]["sampling"]
        self.own: Counter[str] = Counter()
        self.traces: list[tuple[list[str], int]] = []
        self.threads: Counter[str] = Counter()
        for _, resource in profile.all_resources():
            if "trace" in resource and resource["subtype"] == "cpu":
                names = [frame["function"] for frame in resource["trace"]]
                self.own[names[0]] += resource["samples"]
                self.threads[resource["thread"]] += resource["samples"]
                self.traces.append((names, resource["samples"]))

    @property
    def outside(self) -> dict[str, float]:
        """The functions whose shares lie outside of the interval of 99 % around the truth, with these."""
        return outside({name: self.own[name] for name in SHARES}, SHARES)


Sample = Callable[..., Sampled]


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    """Sample a command: `sample("./prog plain 1", stacks="copies")`."""

    def run(command: str, cwd: Path = tmp_path, workload: str = "", **params: Any) -> Sampled:
        scratch = tmp_path / "scratch"
        scratch.mkdir(exist_ok=True)
        given = SampleParams(**{"frequency": FREQUENCY, **params})
        environ = dict(os.environ)
        return Sampled(
            SampleCollector().collect(
                Run(command, "", workload, cwd=cwd, environ=environ), given, CollectContext(scratch)
            )
        )

    return run


def truthful(sample: Sample, command: str, **params: Any) -> Sampled:
    """The samples of a run in which no share is outside of its interval."""
    for _ in range(ATTEMPTS):
        found = sample(command, **params)
        if not found.outside:
            return found
    raise AssertionError(found.outside)


NO_FRAME_POINTERS = ("-fomit-frame-pointer",)
FRAME_POINTERS = ("-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer")


@pytest.mark.parametrize("options", [NO_FRAME_POINTERS, FRAME_POINTERS, ("-static",), ("-O0",)])
def test_shares_and_whole_stacks(program, sample, options) -> None:
    found = truthful(sample, f"{program('sampled.c', *options)} plain 1")
    assert found.facts["whole-stacks"] >= 0.95
    assert found.facts["lost"] == 0
    of_interest = [names for names, _ in found.traces if names[0] in SHARES]
    assert of_interest
    assert all(names[-1] == "main" and "around" in names for names in of_interest)


@pytest.mark.parametrize("mode", ["threads", "fork", "exec", "vfork", "closed", "signals"])
def test_what_programs_do(program, sample, mode) -> None:
    """Threads, children, other programs and signal handlers are sampled as the command is."""
    found = truthful(sample, f"{program('sampled.c')} {mode} 0.6")
    assert found.facts["whole-stacks"] >= 0.95


def test_two_hundred_calls_deep(program, sample) -> None:
    found = truthful(sample, f"{program('sampled.c', '-O1')} deep 0.6")
    assert found.facts["whole-stacks"] >= 0.95
    deep = sum(samples for names, samples in found.traces if names.count("deeper") == 201)
    assert deep >= 0.95 * found.facts["samples"]


def test_functions_of_a_library_that_is_loaded_later(program, sample) -> None:
    library = program("sampled.c", "-O1", "-shared", "-fPIC")
    found = truthful(sample, f"{program('sampled.c')} dlopen 0.6 {library}")
    assert any("loaded" in names for names, _ in found.traces)


def test_frame_pointers_alone(program, sample) -> None:
    whole = truthful(sample, f"{program('sampled.c', *FRAME_POINTERS)} plain 0.6", stacks="frame-pointers")
    assert whole.facts["whole-stacks"] >= 0.95
    assert all("main" in names for names, _ in whole.traces if names[0] in SHARES)
    broken = sample(f"{program('sampled.c', *NO_FRAME_POINTERS)} plain 0.3", stacks="frame-pointers")
    assert broken.facts["whole-stacks"] < 0.5
    assert any("do not reach the outermost function" in note for note in broken.facts["notes"])


@pytest.mark.parametrize("option", ["-O0", "-O2"])
def test_where_threads_wait(program, sample, option) -> None:
    """A thread that sleeps and one that waits for a lock meanwhile, by their callers."""
    found = sample(f"{program('sampled.c', option)} waits", wall=True)
    waits: dict[str, float] = {}
    for _, resource in found.profile.all_resources():
        if resource["subtype"] == "waiting":
            for function in {frame["function"] for frame in resource["trace"]}:
                waits[function] = waits.get(function, 0.0) + resource["amount"]
    assert waits["main"] >= waits["nap"] > 0.9
    assert waits["nap"] == pytest.approx(waits["wait_for_lock"], rel=0.05)
    told = Counter()
    for one in usage_of(found.profile):
        told[one.subtype] += one.seconds
    total = Counter()
    for _, resource in found.profile.all_resources():
        if "trace" in resource:
            total[resource["subtype"]] += resource["amount"]
    assert told == pytest.approx(total, rel=1e-3)


PHASES = """
static volatile unsigned long sink;
#define PHASE(name) __attribute__((noinline)) void name(long n) { while (n--) sink = sink * 3 + 1; }
PHASE(first) PHASE(second) PHASE(third)
int main(void) { first(100000000); second(100000000); third(100000000); return 0; }
"""


def test_the_timeline_tells_what_ran_when(compiled_once, sample, tmp_path) -> None:
    (tmp_path / "phases.c").write_text(PHASES)
    found = sample(str(compiled_once("cc", "-O1", tmp_path / "phases.c")))
    timeline = timeline_of(found.profile)
    assert timeline.calls == found.facts["samples"]
    (lane,) = timeline.threads
    entries = [(timeline.objects[one.object], one) for one in timeline.entries()]
    phases = [name for name, _ in entries if name in ("first", "second", "third")]
    assert [name for name, _ in groupby(phases)] == ["first", "second", "third"]
    trace = json.loads("".join(pieces_of(timeline, "speedscope", "")))
    assert {"first", "second", "third"} <= {one["name"] for one in trace["shared"]["frames"]}
    ends = [one.start + one.duration for _, one in entries]
    assert all(end <= one.start for end, (_, one) in zip(ends, entries[1:], strict=False))
    assert lane.created == entries[0][1].start and lane.destroyed == ends[-1] <= timeline.end


@given(
    st.lists(st.tuples(*(st.integers(0, most) for most in (10**10, 10**7, 9, 3, 3, 40, 1))), min_size=1),
    st.integers(1, 50),
)
def test_more_moments_are_told_by_slices(rows, most) -> None:
    moments = np.array(rows, MOMENT)
    few, _ = within(moments, most)
    different = {tuple(one) for one in moments[["tid", "stack", "waits"]].tolist()}
    assert len(few) <= max(most, len(different))
    for name in ("weight", "samples"):
        sums = [Counter(), Counter()]
        for found, array in zip(sums, (moments, few), strict=True):
            for *key, amount in array[["tid", "stack", "waits", name]].tolist():
                found[tuple(key)] += amount
        assert sums[0] == sums[1]
    assert few["start"].min() == moments["start"].min()


def test_cpp_names_and_inlined_functions(compiled_once, sample, tmp_path) -> None:
    source = tmp_path / "inlined.cpp"
    source.write_text(
        """
        #include <vector>
        namespace shop { template <typename T> struct Till {
            T sum{}; [[gnu::always_inline]] void add(T x) { for (int i = 0; i < 100; i++) sum = sum * 3 + x; }
            [[gnu::noinline]] T count(const std::vector<T> &v) { for (T x : v) add(x); return sum; } }; }
        int main() { std::vector<unsigned> v(1000, 7); shop::Till<unsigned> till; unsigned x = 0;
            for (int i = 0; i < 8000; i++) x += till.count(v); return x == 1; }
        """
    )
    found = sample(str(compiled_once("c++", "-O2", "-g", source)))
    names = next(names for names, _ in sorted(found.traces, key=lambda one: -one[1]) if len(names) > 2)
    assert names[-1] == "main"
    assert names[0].startswith("shop::Till<unsigned int>::add(")
    assert names[1].startswith("shop::Till<unsigned int>::count(")


def test_the_command_is_left_as_it_is(program, tmp_path) -> None:
    """Output, standard input, exit code and a signal that ends it are those without the sampler."""
    command = str(program("sampled.c"))
    for mode, status in (("plain", 0), ("fails", 7), ("killed", -9)):
        words = [command, mode, "0.05"]
        plain = subprocess.run(words, input=b"some text\n", capture_output=True, check=False)
        file = tmp_path / mode
        sampled = subprocess.run(
            [*words_of(SampleParams(), file), *words], input=b"some text\n", capture_output=True, check=False
        )
        assert (sampled.stdout, sampled.stderr) == (plain.stdout, plain.stderr)
        assert plain.returncode == status
        assert read(file).status == (status << 8 if status >= 0 else -status)


def test_the_collector_refuses_a_command_that_fails(program, sample) -> None:
    with pytest.raises(JobFailed, match="exited with status 7"):
        sample(f"{program('sampled.c')} fails 0.05")
    with pytest.raises(JobFailed, match="command not found"):
        sample("./missing")


def test_a_killed_sampler_leaves_what_it_wrote(program, tmp_path) -> None:
    """What the sampler had written is read, and the command goes on."""
    file = tmp_path / "samples"
    words = [*words_of(SampleParams(frequency=FREQUENCY), file), str(program("sampled.c")), "plain", "30"]
    sampler = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0)
    try:
        while not file.is_file() or file.stat().st_size < 4096:
            time.sleep(0.05)
        sampler.kill()
        sampler.wait()
        found = read(file)
        assert found.samples > 10
        assert not found.ended
        os.killpg(sampler.pid, 0)  # the command is there
    finally:
        os.killpg(sampler.pid, signal.SIGKILL)
    whole = file.read_bytes()
    for cut in (len(whole) - 1, len(whole) - 100, 200):
        file.write_bytes(whole[:cut])
        assert read(file).samples <= found.samples


def test_a_stopped_sampler_says_what_was_lost(program, tmp_path) -> None:
    file = tmp_path / "samples"
    words = [*words_of(SampleParams(frequency=FREQUENCY), file), str(program("sampled.c")), "plain", "1.5"]
    sampler = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not file.is_file() or file.stat().st_size < 4096:
        time.sleep(0.05)
    sampler.send_signal(signal.SIGSTOP)
    child = int(Path(f"/proc/{sampler.pid}/task/{sampler.pid}/children").read_text().split()[0])
    while Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.05)
    sampler.send_signal(signal.SIGCONT)
    assert sampler.wait() == 0
    found = read(file)
    assert found.ended
    assert found.lost > 0
    assert found.samples + found.lost > 0.8 * 1.5 * FREQUENCY


def test_a_full_disk_keeps_what_was_written(program, tmp_path) -> None:
    """A file may be no larger than 64 KiB: whole blocks are kept, and the rest is counted."""
    file = tmp_path / "samples"
    words = [*words_of(SampleParams(frequency=FREQUENCY), file), str(program("sampled.c")), "plain", "3"]
    limited = ["sh", "-c", 'trap "" XFSZ; ulimit -f 64; exec "$@"', "sh", *words]
    subprocess.run(limited, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    found = read(file)
    assert found.ended
    assert found.error
    assert found.samples > 100
    assert found.unwritten > 100


def test_a_thousand_children(program, sample) -> None:
    found = sample(f"{program('sampled.c')} forks 1000")
    assert found.facts["processes"] >= 1000
    assert not found.outside or found.own.total() < 200
    assert found.facts["lost"] == 0


def test_attached_to_a_process(program, sample) -> None:
    words = [str(program("sampled.c")), "threads", "30"]
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while len(os.listdir(f"/proc/{process.pid}/task")) < 3:
            time.sleep(0.01)
        found = truthful(sample, "sampled", pid=process.pid, seconds=1.0)
        assert found.facts["whole-stacks"] >= 0.95
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def test_an_ordinary_user_may_sample(program) -> None:
    if os.geteuid() or not shutil.which("setpriv"):
        pytest.skip("only root becomes another user")
    if int(Path("/proc/sys/kernel/perf_event_paranoid").read_text()) > 2:
        pytest.skip("kernel.perf_event_paranoid is above 2")
    with tempfile.TemporaryDirectory() as open_folder:  # the folders of tests are closed to others
        folder = Path(open_folder)
        folder.chmod(0o777)
        _sampled_by_nobody(program, folder)


def _sampled_by_nobody(program: Callable[..., Path], folder: Path) -> None:
    shutil.copy(SAMPLER, folder / "sampler")
    shutil.copy(program("sampled.c"), folder / "sampled")
    words = words_of(SampleParams(frequency=FREQUENCY), folder / "samples")
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"]
    done = subprocess.run(
        [*as_nobody, str(folder / "sampler"), *words[1:], str(folder / "sampled"), "plain", "0.6"],
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True
    )  # fmt: skip
    assert b"perun_sample" not in done.stderr
    found = read(folder / "samples")
    assert found.samples > 400
    assert found.lost == 0


def test_a_machine_that_forbids_it_is_named(program, sample, monkeypatch, tmp_path) -> None:
    """The sampler ends with the errno of what the system refused."""
    for number, message in ((38, "has no perf_event_open"), (13, "perf_event_open|perf_event_paranoid")):
        fake = tmp_path / f"sampler{number}"
        fake.write_text(f"#!/bin/sh\nexit {number}\n")
        fake.chmod(0o755)
        monkeypatch.setattr("perun.collect.sample.collector.SAMPLER", fake)
        with pytest.raises(CollectorUnavailable, match=message):
            sample("true")
        assert any(one.missing for one in SampleCollector().readiness(os.environ))


def below(process: int) -> list[tuple[int, str]]:
    """All processes that a process started, directly or not, with their names; the outermost first."""
    found: list[tuple[int, str]] = []
    with suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                name = Path(f"/proc/{child}/comm").read_text().strip()
                found += [(child, name), *below(child)]
    return found


def used(process: int) -> int:
    """The ticks of CPU time that a process has used; 0 of one that is gone."""
    with suppress(OSError):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    return 0


def runs(process: int) -> bool:
    """Whether a process is there, and no zombie."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def working(process: int, *, sampler: bool = False) -> int:
    """The sampled program below a process, or its sampler, as soon as the program has worked for a while."""
    while True:
        started = below(process)
        at = next((place for place, (_, name) in enumerate(started) if name == "perun_sample"), len(started))
        if len(started) > at + 1 and used(started[at + 1][0]) >= 60:
            return started[at if sampler else at + 1][0]
        time.sleep(0.02)


@pytest.fixture
def signalled() -> Callable[..., Thread]:
    """Send signals to a process below the test, half a second apart, as soon as the program works."""

    def start(*signals: int, sampler: bool = False) -> Thread:
        def send() -> None:
            process = working(os.getpid(), sampler=sampler)
            for number in signals:
                os.kill(process, number)
                time.sleep(0.5)

        thread = Thread(target=send, daemon=True)
        thread.start()
        return thread

    return start


def test_a_killed_program_leaves_its_samples(program, sample, signalled) -> None:
    sender = signalled(signal.SIGKILL)
    found = sample(f"{program('sampled.c')} plain 15", ignore_failure=True)
    sender.join()
    assert found.facts["samples"] > 100
    assert any("killed" in note for note in found.facts["notes"]), found.facts["notes"]


@pytest.mark.slow
def test_a_stopped_program_loses_nothing(program, sample, signalled) -> None:
    """A program that is stopped uses no CPU time, and has no samples meanwhile."""
    sender = signalled(signal.SIGSTOP, signal.SIGCONT)
    found = truthful(sample, f"{program('sampled.c')} plain 1")
    sender.join()
    assert found.facts["lost"] == 0
    assert found.facts["samples"] == pytest.approx(FREQUENCY, rel=0.1)


def test_a_sampler_that_is_killed_makes_an_incomplete_profile(program, sample, signalled) -> None:
    sender = signalled(signal.SIGKILL, sampler=True)
    found = sample(f"{program('sampled.c')} plain 15")
    sender.join()
    assert found.facts["samples"] > 100
    assert "the sampler was killed" in str(text_of(found.profile))


@pytest.mark.slow
def test_perun_that_is_killed_leaves_a_recording_and_no_process(program, git_repository) -> None:
    project = git_repository(commits=1)
    words = [sys.executable, "-m", "perun"]
    subprocess.run([*words, "init"], cwd=project.path, check=True, capture_output=True)
    command = [*words, "collect", "-c", program("sampled.c"), "-w", "plain 15", "sample"]
    perun = subprocess.Popen(
        command, cwd=project.path, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL
    )  # fmt: skip
    working(perun.pid)
    started = [number for number, _ in below(perun.pid)]
    perun.kill()
    perun.wait()
    while any(map(runs, started)):
        time.sleep(0.05)
    (file,) = project.path.glob(".perun/tmp/*/samples")
    found = read(file)
    assert found.samples > 100 and not found.lost
