"""What `perun bench` adds to each run of a command, and how long it takes to start, beside hyperfine."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness import Contestant, once
from report import Measured, Place, Row

FEW, MANY = 20, 520
"""Runs of `true`: the difference of two calls is that of 500 runs, without what starts and ends them."""


def bench(place: Place) -> Iterator[Row]:
    """Each run of `true`, and the whole of a call with a few of them, in turns with hyperfine."""
    if shutil.which("hyperfine") is None:
        return
    folder = place.folder / "bench"
    _make_repository(folder, place.perun)
    commands = {
        "perun": [place.perun, "bench", "true", "--warmup", "0", "--runs"],
        "hyperfine": ["hyperfine", "-N", "--style", "none", "true", "--runs"],
    }
    starts: dict[str, list[float]] = {name: [] for name in commands}
    runs: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(max(place.rounds, 3)):
        for name, words in commands.items():
            few, many = (once(_call(words, number, folder)).wall for number in (FEW, MANY))
            starts[name].append(few)
            runs[name].append((many - few) / (MANY - FEW))
    yield Row("bench: one run of `true`, with all around it", Measured(runs["perun"]),
              Measured(runs["hyperfine"]), "hyperfine", None)  # fmt: skip
    yield Row(f"bench: {FEW} runs of `true`, kept by commit", Measured(starts["perun"]),
              Measured(starts["hyperfine"]), "hyperfine, not kept", None, is_rival=False)  # fmt: skip


def _call(words: Sequence[str], runs: int, folder: Path) -> Contestant:
    return Contestant([*words, str(runs)], folder)


def _make_repository(folder: Path, perun: str) -> None:
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    folder.mkdir()
    for command in (
        ["git", "init", "--quiet"],
        ["git", *identity, "commit", "--quiet", "--allow-empty", "--message", "One"],
        [perun, "init"],
    ):
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
