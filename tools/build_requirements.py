"""Print what `pyproject.toml` asks for to build this project, one requirement a line."""

from __future__ import annotations

import tomllib
from pathlib import Path

if __name__ == "__main__":
    project = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text("utf-8"))
    print(*project["build-system"]["requires"], sep="\n")
