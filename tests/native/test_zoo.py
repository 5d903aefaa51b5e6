"""Programs that are each strange in one way, under every collector and engine: right, or refused by name."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from zoo.cells import EXACT, WRONG, judged, lacking
from zoo.commands import COMMANDS, compared, is_there, make_files
from zoo.known_gaps import KNOWN_GAPS
from zoo.programs import PROGRAMS, Program
from zoo.recording import ENGINES, compile_program

SLOW = ("stap", "callgrind", "perf")
"""Engines that take a second or more for each program."""


def _cells() -> Iterator[Any]:
    for program in PROGRAMS:
        for name, engine in ENGINES.items():
            if not engine.suits(program):
                continue
            marks = [] if program.fast and name not in SLOW else [pytest.mark.slow]
            if gap := KNOWN_GAPS.get((program.name, name)):
                marks.append(pytest.mark.xfail(reason=gap))
            yield pytest.param(program, name, id=f"{program.name}-{name}", marks=marks)


@pytest.mark.parametrize(("program", "engine"), list(_cells()))
@pytest.mark.each_value("program", "engine")
def test_right_or_refused(compiled_once, tmp_path: Path, program: Program, engine: str) -> None:
    if lacks := lacking(program, engine):
        pytest.skip(f"{engine}: {lacks}")
    compiled = compile_program(program, compiled_once)
    if compiled.lacks:
        pytest.skip(compiled.lacks)
    cell = judged(program, compiled, engine, tmp_path)
    assert cell.kind != WRONG, cell.why


def test_known_gaps_are_of_the_zoo() -> None:
    cells = {(program.name, name) for program in PROGRAMS for name in ENGINES}
    assert set(KNOWN_GAPS) <= cells


def test_all_sources_are_of_the_zoo() -> None:
    folder = PROGRAMS[0].source.parent
    known = {name for one in PROGRAMS for name in (one.source.name, *one.more)}
    known |= {one.library.source for one in PROGRAMS if one.library}
    sources = {path.name for path in folder.iterdir() if path.suffix not in (".h", ".py", "")}
    assert sources - {"extension.py"} <= known and len(PROGRAMS) >= 30
    assert all(one.strange for one in PROGRAMS)


# -- A hundred commands of Debian under the collectors that record them as they are: they notice nothing


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    make_files(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("collector", ["memory", "ebpf"])
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_notice_nothing(files: Path, tmp_path: Path, command: str, collector: str) -> None:
    if not is_there(command):
        pytest.skip(f"{command.split()[0]} is not installed")
    if lacks := ENGINES[collector].lacks():
        pytest.skip(f"{collector}: {lacks}")
    cell = compared(command, collector, files, tmp_path)
    assert cell.kind == EXACT, cell.why


def test_there_are_a_hundred() -> None:
    assert len(set(COMMANDS)) == len(COMMANDS) >= 100
