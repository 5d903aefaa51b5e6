"""Damaged programs in the hands of users: each command names what is wrong, or goes on; none breaks."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from damage import build, mutant

COMMANDS = (
    ("trace", "--engine", "ebpf"),
    ("trace", "--engine", "uftrace"),
    ("memory",),
    ("complexity",),
)


@pytest.mark.parametrize("programs", [4, pytest.param(12, marks=pytest.mark.slow)])
def test_no_command_breaks(
    perun: Callable[..., Any], git_repository: Callable[..., Any], tmp_path: Path, programs: int
) -> None:
    folder = git_repository("odd", commits=1).path
    perun("init", cwd=folder)
    built = build(tmp_path)
    broken = []
    for number in range(programs):
        program = folder / f"program{number}"
        program.write_bytes(mutant(built[number % len(built)], random.Random(number)))
        program.chmod(0o755)
        for command in COMMANDS[number % 2 :: 2]:
            done = perun("collect", "-c", f"./{program.name}", *command, cwd=folder, check=False)
            if done.code == 70 or "internal error" in done.err:
                broken.append((number, command, done.err))
    assert not broken
