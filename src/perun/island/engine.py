"""The front of a recorded program as an engine: a command that another part of Perun starts."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Final

from perun.core.errors import PerunError
from perun.island.options import IslandOptions
from perun.island.program_runner import PythonProgram, run
from perun.island.supervisor import end_as
from perun.plugin.params import from_mapping, to_mapping

_START: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; from perun.island.engine import main; main(sys.argv[1])"
)


def words_of(program: PythonProgram, options: IslandOptions, folder: Path) -> list[str]:
    """The command that runs the program: what it prints and how it ends is what the program does.

    It runs in Perun's Python, whatever the environment says to Pythons, and loads next to nothing.

    :param folder: an empty one for the recordings.
    """
    own = {
        name: value
        for name, value in to_mapping(options).items()
        if name in IslandOptions.__dataclass_fields__
    }
    told = json.dumps([*program, own, str(folder.absolute())])
    path = [os.path.abspath(one) for one in sys.path]
    return [sys.executable, "-I", "-S", "-c", _START, told, *path]


def main(told: str) -> None:
    """Run the program that :func:`words_of` tells of, and end as it does."""
    python, options, words, own, folder = json.loads(told)
    try:
        result = run(
            PythonProgram(python, options, words), from_mapping(IslandOptions, own, "island"), Path(folder)
        )
    except PerunError as problem:
        sys.exit(f"{problem.message}\n{problem.hint}".rstrip())
    end_as(result.status)
