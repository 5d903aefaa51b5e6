"""Real programs, compiled once, run with the recorder and without."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from recorded import PROGRAMS, Recorded, read

Run = Callable[..., Recorded]


@pytest.fixture
def record(memory_recorder: Path, tmp_path: Path) -> Run:
    """Run a command with the recorder: `record("./list", "argument", unwind="fp", follow=True)`."""
    runs: Counter[str] = Counter()

    def run(
        *command: str | Path,
        unwind: str = "auto",
        follow: bool = False,
        cwd: Path | None = None,
        stdin: bytes = b"",
        library: Path | None = None,
        **environ: str,
    ) -> Recorded:
        runs["run"] += 1
        file = tmp_path / f"recorded{runs['run']}"
        settings = {
            "LD_PRELOAD": str(library or memory_recorder),
            "PERUN_MEMORY_FILE": str(file),
            "PERUN_MEMORY_UNWIND": unwind,
            **({"PERUN_MEMORY_FOLLOW": "1"} if follow else {}),
        }
        done = subprocess.run(
            list(command),
            env={**os.environ, **settings, **environ},
            cwd=cwd,
            input=stdin,
            capture_output=True,
            timeout=120,
            check=False,
        )
        return read(file, done)

    return run


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Compile one of the programs: `program("list.c", "-fno-omit-frame-pointer")`; once for all tests."""
    folder = tmp_path_factory.mktemp("programs")
    made: dict[tuple[str, ...], Path] = {}

    def compiled(source: str, *options: str) -> Path:
        key = (source, *options)
        if key not in made:
            path = made[key] = folder / f"{Path(source).stem}-{len(made)}"
            compiler = ["c++", "-std=c++17"] if source.endswith(".cpp") else ["cc", "-std=gnu11"]
            subprocess.run(
                [
                    *compiler,
                    "-O2",
                    "-g",
                    "-fno-builtin",
                    "-pthread",
                    *options,
                    "-o",
                    path,
                    PROGRAMS / source,
                    "-ldl",
                ],
                check=True,
                capture_output=True,
            )
        return made[key]

    return compiled
