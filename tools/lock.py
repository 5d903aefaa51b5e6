"""Choose the versions of everything that `make` installs, for each Python and machine, with their hashes.

Usage: python tools/lock.py FOLDER [OPTION OF uv pip compile]...

Writes a requirements file for each use into the folder, which `pip install --require-hashes --no-deps -r
FOLDER/test.txt` installs exactly. Files that stay the same are not touched.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

PROJECT: Final = Path(__file__).parents[1]
USES: Final = {"run": ("plots",), "test": ("test",), "docs": ("docs",), "bench": ("bench",), "dev": ("dev",)}
"""What versions are for, and the extras that it takes. Each file is complete, with what builds Perun."""
PEER: Final = "perun-toolsuite==0.28.3"
"""The older release that `make bench` measures beside; it has an environment, and so versions, of its own."""
HISTORY_PEERS: Final = "apache-otava==0.8.0\nasv==0.6.6\nruptures==1.1.10"
"""What `make bench` measures `perun changes` and `perun web` beside, with other versions of libraries."""
HARNESSES: Final = "pytest-benchmark==5.3.1\npyperf==2.11.0\npympler==1.1\nasv==0.6.6\npy-spy==0.4.3"
"""Harnesses of Python whose suites `make test-all` measures, and tools whose files it imports."""
SHARING_PEER: Final = "dvc==3.67.1"
"""What `make bench` measures `perun push` and `perun pull` beside."""
HEADER: Final = "# Made by `make lock` (tools/lock.py), not to be edited.\n"
OPTIONS: Final = ("--universal", "--generate-hashes", "--quiet", "--no-header", "--no-annotate")
SINGLE_VERSION: Final = ("--fork-strategy", "fewest")
"""One version for all Pythons, where one supports them all; where the options do not say otherwise."""


def main(folder: Path, options: list[str]) -> None:
    """Lock every use; versions are the same in all the files, as all are chosen together first."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))
    extras = project["project"].get("optional-dependencies", {})
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        build = Path(temporary, "build.in")
        build.write_text("\n".join(project["build-system"]["requires"]))
        everything = Path(temporary, "everything.txt")
        inputs = [str(PROJECT / "pyproject.toml"), str(build)]
        everything.write_text(compiled([*inputs, "--all-extras"], options))
        together = [*options, "--constraint", str(everything)]
        for use, names in USES.items():
            wanted = [f"--extra={name}" for name in names if name in extras]
            write(folder / f"{use}.txt", compiled([*inputs, *wanted], together))
        apart = {"peer": PEER, "history-peers": HISTORY_PEERS, "dvc": SHARING_PEER, "harnesses": HARNESSES}
        for name, needs in apart.items():
            peer = Path(temporary, f"{name}.in")
            peer.write_text(needs)
            write(folder / f"{name}.txt", compiled([str(peer), "--python-version=3.11"], options))


def compiled(inputs: Iterable[str], options: Iterable[str]) -> str:
    """The requirements file that uv makes; ends the program with uv's message where there is no solution."""
    uv = Path(sys.executable).with_name("uv")
    command = [str(uv), "pip", "compile", *all_options(options), *inputs]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    return HEADER + done.stdout


def all_options(options: Iterable[str]) -> list[str]:
    """The options that uv gets, none of them twice, which it would refuse."""
    given = list(options)
    return [*OPTIONS, *(() if SINGLE_VERSION[0] in given else SINGLE_VERSION), *given]


def write(file: Path, text: str) -> None:
    """Replace the file where its text is another."""
    if not file.exists() or file.read_text("utf-8") != text:
        file.write_text(text, "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
