"""What a command writes reaches the file and the output of Perun, whatever becomes of one of them."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from perun.core import atomic
from perun.store.files import ON_DISK

SIZE = 1_000_000
"""Bytes that the command writes, more than a pipe holds."""
COPYING = """
import os, resource, sys
from pathlib import Path
from perun.core.process.command import Run
from perun.core.process.execution import Execution
from perun.core.process.execution import Output

if len(sys.argv) > 3:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]),) * 2)
command = Run("head", args=f"-c {sys.argv[2]} /dev/zero", cwd=Path("/"), environ=dict(os.environ))
with Execution(command, Path(sys.argv[1]), output=Output.COPY, single_run=True) as execution:
    sys.exit(execution.run().status)
"""


def copying(folder: Path, output: int, *more: str) -> subprocess.Popen[bytes]:
    """A process that runs a command and copies what it writes to its own standard output."""
    return subprocess.Popen([sys.executable, "-c", COPYING, str(folder), str(SIZE), *more], stdout=output)


def ended(process: subprocess.Popen[bytes]) -> int:
    """The status of a process; one that waits for ever is killed."""
    try:
        return process.wait(timeout=60)
    finally:
        process.kill()
        process.wait()


def test_a_command_whose_output_nobody_reads_any_more_goes_on(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    process = copying(tmp_path, writer)
    os.close(writer)
    os.read(reader, 1)
    os.close(reader)
    assert ended(process) == 0
    assert (tmp_path / "output").stat().st_size == SIZE


def test_all_output_goes_through_a_non_blocking_pipe(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    process = copying(tmp_path, writer)
    os.close(writer)
    with open(reader, "rb") as file:
        assert len(file.read()) == SIZE
    assert ended(process) == 0
    assert (tmp_path / "output").stat().st_size == SIZE


def test_output_is_shown_where_its_file_cannot_grow(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    process = copying(tmp_path, writer, "100000")
    os.close(writer)
    with open(reader, "rb") as file:
        assert len(file.read()) == SIZE
    assert ended(process) == 0
    assert (tmp_path / "output").stat().st_size == 100_000


def test_a_line_that_is_appended_in_part_only_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        ON_DISK.append(path, b"a" * 60)
        with pytest.raises(OSError, match="too large"), atomic.Naming(path):
            ON_DISK.append(path, b"b" * 60)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
