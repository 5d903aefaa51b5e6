"""Python programs: how a command is taken apart, and what is read from their interpreter."""

import os
import sys
from array import array
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from perun.collect._common.recordings import DamagedRecording
from perun.collect._common.runs import python_program_of
from perun.collect.memory.analysis import Analysis
from perun.collect.memory.places import StackTraces
from perun.collect.memory.python import PythonRecording, prepared
from perun.core.errors import CollectorUnavailable, UsageError
from perun.native.symboliser import Symboliser
from perun.plugin.api import Run
from shared import examples

ENVIRON = {"PATH": os.pathsep.join([os.path.dirname(sys.executable), "/usr/bin", "/bin"])}


@pytest.mark.parametrize(("command", "options", "words"), [
    ("prog.py a -c", [], ["prog.py", "a", "-c"]),
    ("-O -X utf8 -W ignore prog.py", ["-O", "-X", "utf8", "-W", "ignore"], ["prog.py"]),
    ("-m pkg.module -x", [], ["-m", "pkg.module", "-x"]),
    ("-Imjson.tool a", ["-I"], ["-m", "json.tool", "a"]),
    ("-c 'import sys' a", [], ["-c", "import sys", "a"]),
    ("-bbcpass", ["-bb"], ["-c", "pass"]),
    ("-Wmodule prog.py", ["-Wmodule"], ["prog.py"]),
    ("--check-hash-based-pycs never -sS prog.py", ["--check-hash-based-pycs", "never", "-sS"], ["prog.py"]),
])  # fmt: skip
def test_the_words_of_the_interpreter(tmp_path: Path, command: str, options, words: list[str]) -> None:
    found = python_program_of(Run(f"{sys.executable} {command}", cwd=tmp_path, environ=ENVIRON))
    assert (found.python, found.options, found.words) == (sys.executable, options, words)


@pytest.mark.parametrize(("first", "options"), [
    (f"#!{sys.executable}", []),
    (f"#!{sys.executable} -O", ["-O"]),
    (f"#!/usr/bin/env {os.path.basename(sys.executable)}", []),
    (f"#! /usr/bin/env -S {os.path.basename(sys.executable)} -u", ["-u"]),
])  # fmt: skip
def test_scripts(tmp_path: Path, first: str, options: list[str]) -> None:
    script = tmp_path / "script"
    script.write_text(f"{first}\npass\n")
    script.chmod(0o755)
    found = python_program_of(Run("./script a", cwd=tmp_path, environ=ENVIRON))
    assert os.path.samefile(found.python, sys.executable)
    assert found[1:] == (options, [f"{tmp_path}/./script", "a"])


@pytest.mark.parametrize("command", ["-", "", "-i", "-m", "-c"])
def test_programs_from_standard_input_are_refused(tmp_path: Path, command: str) -> None:
    with pytest.raises(UsageError, match="standard input"):
        python_program_of(Run(f"{sys.executable} {command}", cwd=tmp_path, environ=ENVIRON))


@pytest.mark.parametrize("command", ["/bin/ls", "./script"])
def test_other_programs_are_refused(tmp_path: Path, command: str) -> None:
    (tmp_path / "script").write_text("#!/bin/sh\n")
    (tmp_path / "script").chmod(0o755)
    with pytest.raises(UsageError, match="is not one"):
        python_program_of(Run(command, cwd=tmp_path, environ=ENVIRON))


def test_the_command_that_is_run(tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.write_text('#!/bin/sh\n[ "$*" = "-B -c import memray" ]\n')
    python.chmod(0o755)
    run = Run(f"{python} -B prog.py", "-v", "< input", cwd=tmp_path, environ=ENVIRON)
    ready = prepared(run, tmp_path / "file", 0.5, follow=True)
    words = ready.command().argv
    assert words[:2] == [str(python), "-B"] and words[2].endswith("python_agent.py")
    assert words[3:] == ["record", str(tmp_path / "file"), "0.5", "1", "prog.py", "-v"]
    assert ready.command().stdin_file == "input"
    with pytest.raises(CollectorUnavailable, match="--python needs memray") as refusal:
        prepared(run._replace(cmd=f"{python} prog.py"), tmp_path / "file", 0.5, follow=False)
    assert "pip install memray" in str(refusal.value.hint)


# -- what the agent writes -----------------------------------------------------------------------------------

ABOUT = (
    b'{"pid": 7, "python": "3", "memray": "1", "started": 1.5, "folders": ["/usr/lib/python3"],'
    b' "kinds": [[1, 1], [2, 32], [3, 13], [14, 12], [15, 12]], "reallocs": [15], "mark": 1000}\n'
)
MINE = '["work", "/project/prog.py", 4]'
THEIRS = '["loads", "/usr/lib/python3/json/__init__.py", 9]'
ODD = '["run", "<string>", 1]'
EVENTS = [
    (16, 100, 5, 1, 14),
    (64, 1025, 9, 1, 14),  # a mark of 25 ms
    (32, 7, 6, 1, 1),
    (16, 0, 0, 1, 2),
    (72, 8, 6, 3, 1),  # of the thread that keeps the time
    (16, 200, 5, 1, 15),  # a realloc, with the release before
    (64, 1050, 9, 1, 14),
    (32, 0, 0, 2, 2),
    (48, 1, 8, 2, 3),
]


def piece(events: list[tuple[int, ...]], stacks: str) -> bytes:
    columns = list(zip(*events, strict=True)) or [()] * 5
    data = b"".join(array(kind, column).tobytes() for kind, column in zip("QQQQB", columns, strict=True))
    head = b'{"events": %d, "stacks": [%s], "marks": [9], "ended": true, "own-threads": [3]}\n'
    return head % (len(events), stacks.encode()) + data


STREAM = (
    ABOUT + piece(EVENTS[:6], f"[5, [{THEIRS}, {MINE}]], [6, [{MINE}]]") + piece(EVENTS[6:], f"[8, [{ODD}]]")
)


def recording(folder: Path, stream: bytes, ending: str = "") -> PythonRecording:
    """The recording that an interpreter would read that writes the stream whatever it is asked."""
    (folder / "stream").write_bytes(stream)
    (folder / "file").touch()
    python = folder / "python"
    if not python.exists():
        python.write_text(f"#!/bin/sh\ncat '{folder}/stream'\n{ending}\n")
        python.chmod(0o755)
    return PythonRecording(folder / "file", str(python), Run("", cwd=folder, environ=ENVIRON))


def test_events_and_sites(tmp_path: Path) -> None:
    read = recording(tmp_path, STREAM)
    analysis = Analysis(1_000_000_000)
    for events in read.pieces():
        analysis.add(events)
    totals = analysis.totals()
    assert (totals.allocations, totals.allocated, totals.releases, totals.leaked) == (4, 308, 2, 201)
    assert (totals.peak, totals.peak_time, totals.temporary) == (207, 25_000_000, 0)
    assert (read.pid, read.started, read.unwinder) == (7, 1_500_000_000, "python")
    places = StackTraces(Symboliser(""), Path("/project"))
    nothing, first, second, third = read.sites(places, whole=False)
    assert nothing is None and first and second and third and first == second
    assert first.uid == ("work", "prog.py", 4) and third.uid == ("run", "<string>", 1)
    whole = read.sites(places, whole=True)[1]
    assert whole and [frame.function for frame in whole.trace] == ["loads", "work"] and whole.uid == first.uid


def test_what_memray_cannot_read_is_told(tmp_path: Path) -> None:
    read = recording(tmp_path, b"", "echo 'OSError: not a file of memray' >&2; exit 1")
    with pytest.raises(DamagedRecording, match="OSError: not a file of memray"):
        list(read.pieces())
    (tmp_path / "stream").write_bytes(STREAM)
    with pytest.raises(DamagedRecording, match="cannot read the recording of memray"):
        list(read.pieces())


@given(cut=st.integers(0, len(STREAM)), place=st.integers(0, len(STREAM) - 1), value=st.integers(0, 255))
@example(cut=len(ABOUT), place=0, value=ABOUT[0])
@settings(
    max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
def test_damage_never_does_more_than_an_error(tmp_path: Path, cut: int, place: int, value: int) -> None:
    stream = bytearray(STREAM)
    stream[place] = value
    read: Any = recording(tmp_path, bytes(stream[:cut]))
    try:
        analysis = Analysis(1_000_000)
        for events in read.pieces():
            analysis.add(events)
        analysis.rows()
        read.sites(StackTraces(Symboliser(""), Path("/project")), whole=False)
    except DamagedRecording as refusal:
        assert refusal.message
