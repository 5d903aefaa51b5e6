"""Samples of Python programs whose functions spend known shares of the time, by each CPython there is."""

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perun.collect.sample.collector import SAMPLER, SampleCollector, SampleParams, refusal, words_of
from perun.collect.sample.records import read
from perun.plugin.api import CollectContext, Run
from recorded import PROGRAMS
from shares import outside

PROGRAM = PROGRAMS / "pythons.py"
FUNCTIONS = 10
WHOLE = FUNCTIONS * (FUNCTIONS + 1) / 2
ATTEMPTS = 4
"""One of ten shares is outside of its interval in one of ten runs."""
FREQUENCY = 1499

why, _ = refusal() if SAMPLER.is_file() else ("the sampler was not built", "")
pytestmark = pytest.mark.skipif(bool(why), reason=why)


def interpreters() -> Iterator[Path]:
    """Each CPython from 3.9 to 3.14 that is on the path, or that pyenv or uv has installed."""
    found = {sys.version_info[1]: Path(sys.executable)}
    homes = [
        Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions"),
        Path.home() / ".local/share/uv/python",
    ]
    for minor in range(9, 15):
        known = [Path(path) for path in filter(None, [shutil.which(f"python3.{minor}")])]
        known += [path for home in homes for path in home.glob(f"*/bin/python3.{minor}")]
        for path in known:
            done = subprocess.run(
                [path, "-c", "import sys; print(sys.implementation.name)"], capture_output=True, check=False
            )
            if done.stdout == b"cpython\n":
                found.setdefault(minor, path)
    return iter(found.values())


PYTHONS = list(interpreters())
each_python = pytest.mark.parametrize("python", PYTHONS, ids=lambda path: path.name)


class PythonSamples:
    """What a profile says of the functions that have shares, and of the recording as a whole."""

    def __init__(self, resources: list[dict], facts: dict) -> None:
        self.facts = facts
        self.own: Counter[int] = Counter()
        self.traces = [
            (resource["trace"], resource["samples"]) for resource in resources if "trace" in resource
        ]
        for trace, samples in self.traces:
            name = trace[0]["function"]
            if name.startswith("share"):
                self.own[int(name.removeprefix("share"))] += samples

    @property
    def outside(self) -> dict[int, float]:
        """The functions whose shares lie outside of the interval of 99 % around the truth, with these."""
        return outside(self.own, {number: (number + 1) / WHOLE for number in range(FUNCTIONS)})

    def names(self, number: int) -> list[list[str]]:
        """The traces of a function as names."""
        return [
            [frame["function"] for frame in trace]
            for trace, _ in self.traces
            if trace[0]["function"] == f"share{number}"
        ]


Sample = Callable[..., PythonSamples]


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    """Sample the program: `sample(python, "threads", stacks="copies")`."""

    def run(interpreter: Path | str, mode: str, program: Path = PROGRAM, **params) -> PythonSamples:
        scratch = tmp_path / "scratch"
        scratch.mkdir(exist_ok=True)
        given = SampleParams(**{"frequency": FREQUENCY, **params})
        command = Run(f"{interpreter} {program} {mode}", "", "", cwd=tmp_path, environ=dict(os.environ))
        profile = SampleCollector().collect(command, given, CollectContext(scratch))
        resources = [resource for _, resource in profile.all_resources()]
        return PythonSamples(resources, profile["collector_info"]["sampling"])

    return run


def truthful(sample: Sample, python: Path | str, mode: str, **params) -> PythonSamples:
    """The samples of a run in which no share is outside of its interval."""
    for _ in range(ATTEMPTS):
        found = sample(python, mode, **params)
        if not found.outside:
            return found
    raise AssertionError(found.outside)


@each_python
def test_shares_callers_and_lines(sample, python) -> None:
    found = truthful(sample, python, "plain")
    assert found.facts["python-samples"] > found.facts["samples"] / 2
    assert found.facts["whole-stacks"] >= 0.95
    for number in range(FUNCTIONS):
        for names in found.names(number):
            assert names == [f"share{number}", f"calls{number}", "turn", "rounds", "main", "<module>"]
    lines = {
        frame["line"]: text
        for trace, _ in found.traces
        for frame in trace
        if frame["function"] == "turn"
        for text in [PROGRAM.read_text().splitlines()[frame["line"] - 1]]
    }
    assert set(lines.values()) <= {"    for k in range(10):", "        CALLS[k](2000 * (k + 1))"}
    assert "        CALLS[k](2000 * (k + 1))" in lines.values()


OUTER = {
    "threads": "_bootstrap",
    "fork": "<module>",
    "thread-fork": "_bootstrap",
    "spawn": "<module>",
    "generators": "<module>",
    "asyncio": "<module>",
    "back": "<module>",
    "packed": "<module>",
    "method": "<module>",
}


OF_EACH = ("threads", "thread-fork", "generators")
"""What the layouts of an interpreter matter for; the others are tried with one."""


@pytest.mark.parametrize(
    ("python", "mode"),
    [(python, mode) for python in PYTHONS for mode in OUTER if python == PYTHONS[0] or mode in OF_EACH],
    ids=lambda one: getattr(one, "name", one),
)
def test_what_programs_do(sample, python, mode) -> None:
    """Threads, children, generators, coroutines, functions that C calls back: each with its callers."""
    found = truthful(sample, python, mode)
    ends = {names[-1].rpartition(".")[2] for number in range(FUNCTIONS) for names in found.names(number)}
    assert ends == {OUTER[mode]}
    assert all(names[1] == f"calls{number}" for number in range(FUNCTIONS) for names in found.names(number))


@each_python
def test_two_hundred_calls_deep(sample, python) -> None:
    found = truthful(sample, python, "deep")
    depths = Counter(names.count("deep") for number in range(FUNCTIONS) for names in found.names(number))
    assert set(depths) == {201}


def test_native_functions_between(sample) -> None:
    """Those of C that call Python stay, and those of extensions; the interpreter's own are only in `all`."""
    found = sample(sys.executable, "back")
    between = [names for names in found.names(9) if "compared" in names]
    assert between
    assert all("compared" in names and "called_back" in names for names in between)
    assert any(len(names) > names.index("called_back") + 1 for names in between)
    assert any(any("sort" in name for name in names) for names in between)
    assert not any(any("EvalFrame" in name for name in names) for names in between)
    kept = sample(sys.executable, "plain", python="all")
    assert any(any("EvalFrame" in name for name in names) for names in kept.names(9))
    alone = sample(sys.executable, "plain", python="off")
    assert not alone.own
    assert alone.facts["python-samples"] == 0


def test_methods_have_qualified_names(sample) -> None:
    found = sample(sys.executable, "method")
    name = "Holder.method" if sys.version_info >= (3, 11) else "method"
    assert any(name in names for names in found.names(9))


def test_frame_pointers_alone(sample) -> None:
    found = truthful(sample, sys.executable, "plain", stacks="frame-pointers")
    assert found.facts["python-samples"] > found.facts["samples"] / 2


def test_functions_that_wait(sample, tmp_path) -> None:
    code = tmp_path / "waiting.py"
    code.write_text("import time\ndef asleep():\n    time.sleep(0.5)\nasleep()\n")
    found = sample(sys.executable, "", program=code, wall=True)
    waits = [[frame["function"] for frame in trace] for trace, _ in found.traces]
    assert ["asleep", "<module>"] in waits


@each_python
def test_the_program_is_left_as_it_is(python, tmp_path) -> None:
    code = (
        "import signal, sys, threading; print(sys.argv, sys.flags, sys.gettrace(), sys.getprofile());"
        "print(signal.getsignal(signal.SIGPROF), threading.active_count());"
        "print(sys.stdin.read()); sys.stderr.write('error'); sys.exit(7)"
    )
    words = [str(python), "-c", code, "argument"]
    plain = subprocess.run(words, input=b"some text\n", capture_output=True, check=False)
    sampled = subprocess.run(
        [*words_of(SampleParams(), tmp_path / "samples"), *words],
        input=b"some text\n", capture_output=True, check=False
    )  # fmt: skip
    assert (sampled.stdout, sampled.stderr) == (plain.stdout, plain.stderr)
    assert os.waitstatus_to_exitcode(read(tmp_path / "samples").status) == plain.returncode == 7


def test_programs_that_end_at_once(tmp_path) -> None:
    for number in range(10):
        file = tmp_path / f"samples{number}"
        words = [*words_of(SampleParams(frequency=FREQUENCY), file), sys.executable, "-S", "-c", "pass"]
        assert subprocess.run(words, check=False).returncode == 0
        assert read(file).ended


def test_attached_to_a_process(sample) -> None:
    with subprocess.Popen([sys.executable, PROGRAM, "forever"]) as process:
        try:
            found = truthful(sample, "", "", pid=process.pid, seconds=1.0)
        finally:
            process.send_signal(signal.SIGKILL)
    assert all(names[1] == f"calls{number}" for number in range(FUNCTIONS) for names in found.names(number))


def test_a_library_that_is_no_cpython_is_named(sample, tmp_path) -> None:
    """Programs of the names of other interpreters: the note says what they are."""
    other = tmp_path / "pypy3.10"
    source = tmp_path / "other.c"
    source.write_text("int main(void) { volatile long i; for (i = 0; i < 300000000; i++); return 0; }\n")
    subprocess.run(["cc", "-O1", "-o", other, source], check=True)
    found = sample(other, "")
    assert found.facts["python-samples"] == 0
    assert "the functions of pypy3.10 are not told: it is not CPython" in found.facts["notes"]
