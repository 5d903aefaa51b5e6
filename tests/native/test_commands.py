"""A hundred commands of Debian under the collectors that record them as they are: they notice nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from zoo.cells import EXACT
from zoo.commands import COMMANDS, compared, is_there, make_files
from zoo.recording import ENGINES


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
