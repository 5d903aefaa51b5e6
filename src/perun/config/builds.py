"""How a project is built, as far as its files tell: what `execute.pre_run` may be set to."""

from __future__ import annotations

import json
import shlex
import tomllib
from pathlib import Path
from typing import Final, NamedTuple

_READ_LIMIT: Final = 1 << 20


class Build(NamedTuple):
    """A way to build: what it is called, the file that tells of it, and the commands, which need no shell.

    The commands work in a fresh working directory, and again in one where they were run before.
    """

    system: str
    file: str
    commands: tuple[str, ...]

    @property
    def command(self) -> str:
        """The command that sets `execute.pre_run`."""
        return f"perun config set execute.pre_run {shlex.quote(json.dumps(self.commands))}"


def recognise(project_dir: Path, *, makes_programs: bool = False) -> Build | None:
    """How the project is built; None if that is not recognised.

    What describes the whole build goes before what may only call it: a Makefile beside a CMakeLists.txt is
    usually a short cut.

    :param makes_programs: whether it is to make a compiled program. Setuptools makes extensions and scripts
        only, so that a Makefile beside its files is the one that does.
    """
    for find in (_meson, _cmake, _cargo, _setuptools, _make):
        if makes_programs and find is _setuptools:
            continue
        found = find(project_dir)
        if found is not None:
            return found
    return None


def _file(folder: Path, *names: str) -> str:
    return next((name for name in names if (folder / name).is_file()), "")


def _text(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(_READ_LIMIT).decode("utf-8", "replace")
    except OSError:
        return ""


def _meson(folder: Path) -> Build | None:
    file = _file(folder, "meson.build")
    # One of a part of a larger project has no project of its own.
    if not file or "project(" not in _text(folder / file).replace(" ", ""):
        return None
    return Build("meson", file, ("meson setup build --buildtype=release", "meson compile -C build"))


def _cmake(folder: Path) -> Build | None:
    file = _file(folder, "CMakeLists.txt")
    if not file:
        return None
    configure = "cmake -S . -B build -DCMAKE_BUILD_TYPE=Release"
    return Build("cmake", file, (configure, "cmake --build build --parallel"))


def _cargo(folder: Path) -> Build | None:
    file = _file(folder, "Cargo.toml")
    return Build("cargo", file, ("cargo build --release",)) if file else None


def _setuptools(folder: Path) -> Build | None:
    file = _file(folder, "setup.py", "setup.cfg")
    if not file and _is_setuptools(_text(folder / "pyproject.toml")):
        file = "pyproject.toml"
    if not file:
        return None
    # An environment of its own for each version: nothing of the user's is overwritten.
    install = "build/venv/bin/python -m pip install --quiet ."
    return Build("setuptools", file, ("python3 -m venv build/venv", install))


def _is_setuptools(text: str) -> bool:
    try:
        data = tomllib.loads(text)
    except ValueError:
        return False
    system = data.get("build-system")
    if isinstance(system, dict):
        return str(system.get("build-backend", "setuptools")).startswith("setuptools")
    return isinstance(data.get("project"), dict)  # what pip then takes


def _make(folder: Path) -> Build | None:
    file = _file(folder, "GNUmakefile", "makefile", "Makefile")
    if file:
        return Build("make", file, ("make",))
    file = _file(folder, "configure")
    return Build("autotools", file, ("./configure", "make")) if file else None
