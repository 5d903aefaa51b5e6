"""`perun collect island`: Python programs that are recorded by the real command, and what is told of them."""

import json
import math
import os
import signal
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """\
import os
import signal
import sys
import threading
import time

def work(number, text="12345678"):
    with open(f"out{number}.txt", "w") as file:
        for _ in range(25):
            file.write(text)

how = sys.argv[1] if sys.argv[1:] else "return"
if how == "quickly":
    work(0, "1234567890")
    sys.exit()
threads = [threading.Thread(target=work, args=(number,), name=f"worker-{number}") for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
time.sleep(0.01)
if how == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
if how == "fork":
    child = os.fork()
    work(5)
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
if how.isdecimal():
    print("no such luck", file=sys.stderr)
    sys.exit(int(how))
"""
POOL = """\
import multiprocessing
import sys

def size(name):
    with open(name) as file:
        return len(file.read())

if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        assert pool.map(size, ["out0.txt"] * 4) == [5] * 4
"""


class Collected:
    """A profile as the command stored it.

    :ivar resources: one by one. :ivar said: what the command printed.
    """

    def __init__(self, path: Path, said: str) -> None:
        self.profile: dict[str, Any] = json.loads(path.read_text())
        self.said = said
        self.resources = []
        for key, columns in self.profile["resources"].items():
            constants = self.profile["resource_type_map"][key]
            for row in zip(*columns.values(), strict=True):
                self.resources.append(constants | dict(zip(columns, row, strict=True)))

    def of(self, **fields: Any) -> list[dict[str, Any]]:
        """The resources with these values."""
        return [one for one in self.resources if fields.items() <= one.items()]


@pytest.fixture
def collect(project: Any, perun: Callable[..., Any]) -> Callable[..., Collected]:
    """Collect the program, called with an argument: `collect("kill", "--repeat", "2")`."""
    (project.path / "prog.py").write_text(PROGRAM)
    (project.path / ".gitignore").write_text("out*\n")
    jobs = project.path / ".perun/jobs"

    def run(argument: str, *options: str) -> Collected:
        before = set(jobs.glob("*.perf"))
        done = perun("collect", "-c", f"{sys.executable} prog.py {argument}", "island", *options)
        (path,) = set(jobs.glob("*.perf")) - before
        return Collected(path, done.out + done.err)

    return run


def test_what_threads_write_is_counted_by_file(collect: Callable[..., Collected]) -> None:
    made = collect("", "--repeat", "2")
    for order in (1, 2):
        written = [row for row in made.of(subtype="filewrite", order=order) if row["amount"]]
        assert sorted((row["thread"], row["uid"], row["amount"]) for row in written) == [
            (f"worker-{number}", f"out{number}.txt#1", 200) for number in range(4)
        ]
        (sleep,) = made.of(subtype="sleep", order=order)
        assert sleep["amount"] == 0.01 <= sleep["seconds"]
    assert made.profile["island"]["runs"] == 2
    assert made.profile["island"]["ended"] == "exit code 0"
    assert {one["subtype"] for one in made.of(type="time")} == {"real", "user", "sys"}
    assert "real time" in made.said


def test_the_seconds_of_a_thread_are_its_life(collect: Callable[..., Collected]) -> None:
    made = collect("")
    sums: dict[str, float] = defaultdict(float)
    for row in made.resources:
        if "thread" in row:
            sums[row["thread"]] += row["seconds"]
    lives = {name: (end - start) / 1e9 for name, _, start, end in made.profile["timeline"]["threads"]}
    assert sums.keys() == lives.keys() == {"MainThread", *(f"worker-{number}" for number in range(4))}
    for name, life in lives.items():
        assert math.isclose(sums[name], life, abs_tol=0.001)


def test_a_killed_program_leaves_what_it_did(collect: Callable[..., Collected]) -> None:
    made = collect("kill")
    assert made.profile["header"]["incomplete"][0]["reason"] == "killed"
    assert "SIGKILL" in made.profile["island"]["ended"]
    assert sum(row["amount"] for row in made.of(subtype="filewrite")) == 800
    assert made.profile["timeline"]["calls"] > 100


def test_forked_processes_are_told_apart(collect: Callable[..., Collected]) -> None:
    made = collect("fork")
    written = {row["thread"] for row in made.of(subtype="filewrite", uid="out5.txt#1")}
    assert written == {"MainThread in prog.py", "MainThread in child of prog.py (1)"}


@pytest.mark.parametrize("how", ["spawn", "forkserver"])
def test_processes_that_multiprocessing_spawns_are_recorded(project, collect, how: str) -> None:
    (project.path / "prog.py").write_text(POOL)
    (project.path / "out0.txt").write_text("12345")
    made = collect(how)
    read = {row["thread"] for row in made.of(subtype="fileread", uid="out0.txt#1")}
    assert read and all(one.startswith("MainThread in child of prog.py (") for one in read)
    blocked = made.of(type="wait", subtype="blocked")
    assert any(one["thread"].startswith("Thread-") for one in blocked)  # waits in C for tasks of the pool


def test_failing_programs(collect: Callable[..., Collected], perun: Callable[..., Any]) -> None:
    done = perun("collect", "-c", f"{sys.executable} prog.py 3", "island", check=False)
    assert done.code != 0
    assert "no such luck" in done.err and "3" in done.err and "Traceback" not in done.err
    assert collect("3", "-i").profile["island"]["ended"] == "exit code 3"


def test_other_programs_are_refused(project: Any, perun: Callable[..., Any]) -> None:
    for command in ("ls", "sh -c true", "/bin/true"):
        done = perun("collect", "-c", command, "island", check=False)
        assert done.code == 2
        assert (
            f"the collector island needs a Python program, but '{command.split()[0]}' is not one" in done.err
        )
        assert "perun collect trace" in done.err
    assert "standard input" in perun("collect", "-c", f"{sys.executable} -", "island", check=False).err


def test_an_interpreter_that_is_too_old_is_refused(project: Any, perun: Callable[..., Any]) -> None:
    old = project.path / "python2"
    old.write_text("#!/bin/sh\necho SyntaxError >&2\nexit 1\n")
    old.chmod(0o755)
    done = perun("collect", "-c", "./python2 prog.py", "island", check=False)
    assert "the collector island needs Python 3.9 or newer" in done.err
    assert "SyntaxError" not in done.err


@pytest.mark.parametrize("limit", ["filewrite", "filewrite=", "filewrite=x", "nonsense=3", "cpu=-1"])
def test_wrong_limits_are_refused(collect, perun, limit) -> None:
    done = perun("collect", "-c", f"{sys.executable} prog.py", "island", "--limit", limit, code=2)
    assert limit.partition("=")[0] in done.err and "Traceback" not in done.err


def test_a_limit_is_in_the_profile(collect: Callable[..., Collected]) -> None:
    made = collect("quickly", "--limit", "filewrite=2500", "--timeline-entries", "0")
    (written,) = made.of(subtype="filewrite", uid="out0.txt#1")
    assert written["amount"] == 250
    assert written["seconds"] >= 0.1
    assert made.profile["collector_info"]["params"]["limit"] == ["filewrite=2500"]
    assert "timeline" not in made.profile


def test_views_of_an_island(collect: Callable[..., Collected], perun: Callable[..., Any]) -> None:
    collect("")
    assert perun("show", "0@p", "timeline", "-f", "line.html").out == "line.html\n"
    assert "worker-3" in Path("line.html").read_text()
    events = [json.loads(line) for line in perun("show", "0@p", "timeline", "--format", "json").lines]
    assert sum(event["amount"] for event in events if event["api"] == "file.write") == 800
    perun("show", "0@p", "flamegraph", "-f", "flames.html")
    folded = perun("show", "0@p", "flamegraph", "--format", "folded").out
    assert "worker-1;disk;filewrite;out1.txt#1 " in folded
    assert "out2.txt#1" in perun("show", "0@p", "tableof", "resources").out
    summary = perun("show", "0@p").out
    for line in ("all 5 threads: ", "worker-3: ", "200 B  disk filewrite           out3.txt#1"):
        assert line in summary
    perun("show", "0@p", "bars", "sum", "--of", "seconds", "--per", "subtype", "--by", "thread", "--terminal")


def test_check_names_the_file_that_is_written_more(project, collect, perun) -> None:
    project.commit("Write")
    collect("")
    perun("add", "0@p")
    (project.path / "prog.py").write_text(PROGRAM.replace('"12345678"', '"12345678" * 2'))
    project.commit("Write twice as much")
    perun("collect", "-c", f"{sys.executable} prog.py ", "island")
    perun("add", "0@p")
    report = perun("check", "head", check=False).out
    for location in ("out0.txt#1 [filewrite]", "filewrite  ", "out3.txt#1 [filewrite]"):
        assert any("Severe Degradation" in line and location in line for line in report.splitlines()), (
            location
        )
    (registered,) = perun("status", "--json").json["registered"]
    assert registered["measured"]["metric"] in ("real time", "cpu time")


def test_parameters_of_a_job_matrix(project: Any, perun: Callable[..., Any]) -> None:
    (project.path / "prog.py").write_text(PROGRAM)
    project.commit("A program")
    (project.path / ".perun/local.yml").write_text(
        f"vcs: {{type: git, url: ..}}\ncmds: ['{sys.executable} prog.py']\nargs: [quickly]\ncollectors:\n"
        "  - name: island\n"
        "    params: {limit: ['filewrite=1e6', filesopened=9], repeat: 2, all_calls: true}\n"
    )
    perun("run", "--force-dirty", "matrix")
    (path,) = (project.path / ".perun/jobs").glob("*.perf")
    params = json.loads(path.read_text())["collector_info"]["params"]
    assert (params["limit"], params["repeat"], params["all_calls"]) == (
        ["filewrite=1e6", "filesopened=9"],
        2,
        True,
    )


def test_an_interpreter_of_its_own(project: Any, perun: Callable[..., Any], tmp_path: Path) -> None:
    """A script whose first line names an interpreter without Perun, with modules that are called as ours."""
    python = tmp_path / "bin/python3"
    python.parent.mkdir()
    python.symlink_to(Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}"))
    script = project.path / "script"
    script.write_text(
        f"#!{python} -B\nimport perun, layout\nopen('o', 'w').write(perun.MINE + layout.MINE)\n"
    )
    script.chmod(0o755)
    for name in ("perun", "layout"):
        (project.path / f"{name}.py").write_text("MINE = 'mine'\n")
    perun("collect", "-c", "./script", "island", env={"PYTHONPATH": None})
    assert (project.path / "o").read_text() == "minemine"


def test_an_interrupted_run_is_kept(project: Any, command: list[str], environment: dict[str, str]) -> None:
    """Ctrl-C while the program runs: the profile has what was recorded by then."""
    import subprocess

    (project.path / "prog.py").write_text(
        "import pathlib, time\npathlib.Path('out').write_text('x')\ntime.sleep(60)\n"
    )
    words = [*command, "collect", "-c", f"{sys.executable} prog.py", "island"]
    with subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env=environment,
    ) as process:
        out = project.path / "out"
        while not (out.exists() and out.read_text()):
            assert process.poll() is None
        os.kill(process.pid, signal.SIGINT)
        process.communicate()
    (path,) = (project.path / ".perun/jobs").glob("*.perf")
    made = Collected(path, "")
    assert made.profile["header"]["incomplete"][0]["reason"] == "interrupted"
    assert made.of(subtype="filewrite", uid="out#1")[0]["amount"] == 1
