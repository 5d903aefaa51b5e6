"""Generated configuration files: the three templates of a local one (manual 11.3) and the shared one.

Each file shows all keys that it may hold: those that are set, and the others as commented-out hints.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.core.config.schema import KEYS, ConfigKey, KeyKind, Scope
from perun.core.errors import UsageError

# How a project is built, as far as its files tell: what `execute.pre_run` may be set to.

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


# What a project may want to profile: executables and inputs in folders with telling names (manual 11.3).

EXECUTABLE_FOLDERS: Final = ("build", "_build", "dist")
WORKLOAD_FOLDERS: Final = ("workload", "workloads", "examples", "payloads")
MAX_FOUND: Final = 50
MAX_VISITED: Final = 50_000
"""Files and folders that are looked at in all; a larger project is searched in part."""

_SKIPPED: Final = frozenset(("node_modules", "__pycache__", "CMakeFiles", "site-packages", "meson-private"))
_NOT_A_PROGRAM: Final = re.compile(r".*\.(so|dylib|dll)(\.[0-9]+)*|.*\.(o|a|lo|la|obj|ko|pyc)")


class Candidates(NamedTuple):
    """What was found, as it is written in a job matrix, sorted; and how many more there are."""

    names: list[str]
    left_out: int
    folders: tuple[str, ...]


def find_executables(project_dir: Path) -> Candidates:
    """Executable programs and scripts, no libraries, within folders named build, _build or dist."""
    return _find(project_dir, EXECUTABLE_FOLDERS, _is_program)


def find_workloads(project_dir: Path) -> Candidates:
    """All files within folders named workload, workloads, examples or payloads."""
    return _find(project_dir, WORKLOAD_FOLDERS, lambda entry: entry.is_file())


def _find(project: Path, folders: tuple[str, ...], accept: Callable[[os.DirEntry[str]], bool]) -> Candidates:
    found = sorted(path for path, entry in _walk(project, folders) if _is_accepted(entry, accept))
    names = [shlex.quote(f"./{path}") for path in found]
    return Candidates(names[:MAX_FOUND], max(0, len(names) - MAX_FOUND), folders)


def _walk(project: Path, folders: tuple[str, ...]) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Files below a folder with one of the names, with their path in the project; broad before deep.

    Hidden files and folders are skipped, and folders that are symbolic links, so there are no loops.
    """
    waiting = [("", False)]
    visited = 0
    for folder, wanted in waiting:
        for entry in _entries(project / folder):
            visited += 1
            if visited > MAX_VISITED:
                return
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.name.startswith(".") or not _is_text(path):
                continue
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in _SKIPPED and not os.path.exists(os.path.join(entry.path, "pyvenv.cfg")):
                    waiting.append((path, wanted or entry.name in folders))
            elif wanted:
                yield path, entry


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []  # a folder that may not be read has no candidates


def _is_text(path: str) -> bool:
    """Whether the name can be written in a configuration: UTF-8 without control characters."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return not any(ord(char) < 32 or ord(char) == 127 for char in path)


def _is_accepted(entry: os.DirEntry[str], accept: Callable[[os.DirEntry[str]], bool]) -> bool:
    try:
        return accept(entry)
    except OSError:
        return False


def _is_program(entry: os.DirEntry[str]) -> bool:
    if _NOT_A_PROGRAM.fullmatch(entry.name) or not entry.is_file() or not entry.stat().st_mode & 0o111:
        return False
    with open(entry.path, "rb") as file:
        start = file.read(4)
    return start == b"\x7fELF" or start[:2] == b"#!"


# Values as YAML text that every reader of YAML 1.1 and 1.2 understands the same way.

_WORD = r"[A-Za-z0-9_./+=~^-]"
_PLAIN: Final = re.compile(rf"\.\.|([A-Za-z_]|\.{{0,2}}/){_WORD}*( {_WORD}+)*")
_CONSTANTS: Final = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def scalar(text: str) -> str:
    """Text as one scalar on one line, in quotes if it could be read as something else."""
    if _PLAIN.fullmatch(text) and text.lower() not in _CONSTANTS:
        return text
    if text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return '"' + "".join(map(_escaped, text)) + '"'


def inline(value: Any) -> str:
    """Any value on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{scalar(str(key))}: {inline(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(inline, value)) + "]"
    if isinstance(value, str):
        return scalar(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value)
    return {"inf": ".inf", "-inf": "-.inf", "nan": ".nan"}.get(text, text)


def entry(key: str, value: Any, indent: int = 0) -> list[str]:
    """The lines of a key with its value; what holds other values has a line for each of them."""
    head = " " * indent + scalar(key) + ":"
    if is_block(value):
        return [head, *block(value, indent + 2)]
    return [f"{head} {inline(value)}"]


def block(value: Any, indent: int = 0) -> list[str]:
    """The lines of a mapping or list that is not empty."""
    if isinstance(value, Mapping):
        return [line for key, item in value.items() for line in entry(str(key), item, indent)]
    lines: list[str] = []
    for item in value:
        if is_block(item):
            first, *rest = block(item, indent + 2)
            lines += [" " * indent + "- " + first.lstrip(" "), *rest]
        else:
            lines.append(" " * indent + "- " + inline(item))
    return lines


def is_block(value: Any) -> bool:
    """Whether the value takes lines of its own below its key."""
    return isinstance(value, (Mapping, list, tuple)) and bool(value)


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_STRATEGIES: Final[list[dict[str, Any]]] = [
    {"method": "hodges_lehmann_ratio"},
    {"method": "average_amount_threshold", "instead_of": "hodges_lehmann_ratio"},
]
_DEVELOPER: Final[dict[str, Any]] = {
    "degradation.strategies": _STRATEGIES,
    "degradation.collect_before_check": True,
    "degradation.log_collect": True,
}
TEMPLATES: Final[Mapping[str, Mapping[str, Any]]] = {
    "user": {
        **_DEVELOPER,
        "collectors": [{"name": "time", "params": {"warmup": 3, "repeat": 10}}],
        "profiles.register_after_run": True,
        "format.output_profile_template": "%collector%-of-%cmd%-%workload%-%date%",
    },
    "developer": _DEVELOPER,
    "master": {"degradation.strategies": _STRATEGIES},
}
"""The keys that each template sets beside `vcs` (manual 11.3, where `master` sets none).

`user` and `developer` also set `execute.pre_run` to what builds the project; `user` looks for cmds and
workloads.
"""

_LOCAL_KEYS: Final = (
    "vcs.type",
    "vcs.url",
    "vcs.main_branch",
    "store.url",
    "cmds",
    "args",
    "workloads",
    "collectors",
    "harnesses",
    "postprocessors",
    "execute.pre_run",
    "execute.timeout",
    "generators.workload",
    "profiles.register_after_run",
    "remotes",
    "format.status",
    "format.shortlog",
    "format.output_profile_template",
    "format.sort_profiles_by",
    "degradation.collect_before_check",
    "degradation.log_collect",
    "degradation.apply",
    "degradation.strategies",
)
_GENERATOR_EXAMPLE: Final = [
    {"id": "gen", "type": "integer", "min_range": 10, "max_range": 100, "step": 10},
]
_LEGEND: Final = (
    "Lines that begin with ## explain. Lines that begin with a single # are hints: remove the `# ` of a "
    "key, and of its section, to set it. Key by key, what is not set here is looked up in the "
    "configurations above this one."
)


def render(template: str, project_dir: Path, vcs_type: str, vcs_url: str | Path, store_url: str = "") -> str:
    """The text of a new `local.yml`.

    :param template: `user`, `developer` or `master`.
    :param project_dir: absolute folder that holds `.perun`; `user` looks there for commands and workloads.
    :param vcs_url: folder of the wrapped repository, absolute or as seen from the project; written relative
        to `.perun` if one of the two folders holds the other.
    :param store_url: the database that holds the store; empty for files.
    :raises UsageError: if there is no such template.
    """
    if template not in TEMPLATES:
        known = ", ".join(TEMPLATES)
        raise UsageError(f"there is no configuration template {template!r}", f"the templates are {known}")
    active: dict[str, Any] = {"vcs.type": vcs_type, "vcs.url": relative_url(project_dir, vcs_url)}
    if store_url:
        active["store.url"] = store_url
    active.update(TEMPLATES[template])
    notes: dict[str, str] = {}
    if template == "user":
        _add_candidates(active, notes, "cmds", find_executables(project_dir))
        _add_candidates(active, notes, "workloads", find_workloads(project_dir))
    build, builds = recognise(project_dir), template != "master"
    hints: dict[str, Any] = {"generators.workload": _GENERATOR_EXAMPLE}
    if build is not None:
        notes["execute.pre_run"] = f"This project is built by {build.system} ({build.file})."
        (active if builds else hints)["execute.pre_run"] = list(build.commands)
    elif builds:
        notes["execute.pre_run"] = "How this project is built was not recognised, so nothing is run."
    title = f"Local configuration of Perun (template {template})."
    return _document(title, _LOCAL_KEYS, active, notes, hints)


def default_shared() -> str:
    """The text of a new `shared.yml`, with the built-in values."""
    rows = [key for key in KEYS.values() if key.scope is not Scope.LOCAL and key.kind is not KeyKind.IGNORED]
    keys = [key.name for key in rows]
    active = {name: KEYS[name].default for name in keys if KEYS[name].example is None}
    hints = {"generators.workload": _GENERATOR_EXAMPLE}
    return _document("Configuration that all instances of Perun on this host share.", keys, active, {}, hints)


def relative_url(project_dir: Path, vcs_url: str | Path) -> str:
    """The value of `vcs.url`: relative to the `.perun` folder of the project if that is natural."""
    project, url = os.path.normpath(project_dir), os.path.normpath(os.path.join(project_dir, vcs_url))
    if os.path.commonpath((project, url)) in (project, url):
        return os.path.relpath(url, os.path.join(project, ".perun"))
    return url


def _add_candidates(active: dict[str, Any], notes: dict[str, str], key: str, found: Candidates) -> None:
    if found.names:
        active[key] = found.names
    if found.left_out:
        notes[key] = f"{found.left_out} more were found and left out."
    elif not found.names:
        notes[key] = f"None were found in folders named {', '.join(found.folders)}."


def _document(
    title: str,
    keys: Iterable[str],
    active: Mapping[str, Any],
    notes: Mapping[str, str],
    hints: Mapping[str, Any],
) -> str:
    lines = [*_comment(title), *_comment(_LEGEND)]
    section = ""
    names = list(keys)
    for name in names:
        top, _, rest = name.partition(".")
        is_set = not rest or any(one.startswith(top + ".") for one in active)
        if not rest or top != section:
            lines.append("")
        if rest and top != section:
            lines.append(f"{top}:" if is_set else f"# {top}:")
        section = top if rest else ""
        indent = 2 if rest else 0
        lines += _comment(KEYS[name].help + (f" {notes[name]}" if name in notes else ""), indent)
        lines += _key_lines(KEYS[name], rest or name, active, hints, indent)
    return "\n".join(lines) + "\n"


def _key_lines(
    key: ConfigKey, last: str, active: Mapping[str, Any], hints: Mapping[str, Any], indent: int
) -> list[str]:
    if key.name in active:
        return entry(last, active[key.name], indent)
    value = hints.get(key.name, key.default if key.example is None else key.example)
    return [f"# {line}" for line in entry(last.strip("<>"), value, indent)]


def _comment(text: str, indent: int = 0) -> list[str]:
    lines = textwrap.wrap(text, 98 - indent, break_long_words=False, break_on_hyphens=False)
    return [" " * indent + "## " + line for line in lines]
