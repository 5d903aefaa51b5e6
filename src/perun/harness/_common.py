"""What harnesses share: tools that must be there, what they answer, and where benchmarks are looked for."""

from __future__ import annotations

import json
import mmap
import os
import platform
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from perun.core.errors import CollectorUnavailable, JobFailed
from perun.plugin.params import param
from perun.plugin.suites import HarnessContext, SuiteProgram, ToolOutput

_LEFT_OUT: Final = frozenset({
    "node_modules", "target", "vendor", "build", "dist", "third_party", "__pycache__", "venv",
})  # fmt: skip
"""Folders of what was built or belongs to others."""
_NOT_BUILT: Final = frozenset({"node_modules", "__pycache__", "venv"})
"""Folders where no build puts programs."""
_MOST_BUILT: Final = 200_000
MOST_FOUND: Final = 300
_MOST_LOOKED_AT: Final = 20_000
_MOST_READ: Final = 1 << 20
_WALKED: Final[list[dict[Path, list[Path]]]] = []
"""The files of each folder, while :func:`one_walk` holds."""
_LINES: Final = 10
_SAMPLES: Final = 5
MOST_SAMPLES: Final = 25
"""Of a benchmark in one process: their median bears that others had the processor for a moment."""
_SAMPLE: Final = 0.001
"""Seconds of a sample, where there is time for so long ones."""
CAN_MARK: Final = platform.machine() == "x86_64"
"""Whether scripts can say from where on their instructions count, see `_counting.py`."""
_SPECIAL: Final = re.compile(r"[\\.+*?()|\[{^$]")
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_MISSING: Final = """\
import sys
here = sys.path.pop(0)
import importlib.util, json
from importlib import metadata
sys.path.insert(0, here)
missing = [name for name in sys.argv[1:] if importlib.util.find_spec(name) is None]
told = filter(None, (one.read_text("direct_url.json") for one in metadata.distributions()))
editable = [one["url"] for one in map(json.loads, told) if one.get("dir_info", {}).get("editable")]
print(json.dumps([missing, editable]))"""
_WITH_MODULES: Final = """\
import os, sys
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [sys.argv[1], os.environ.get("PYTHONPATH")]))
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])"""
"""Puts folders in front of the search path, whatever that of the user is."""


def files_with(folder: Path, suffixes: tuple[str, ...], defines: Callable[[str, str], bool]) -> list[str]:
    """The paths of the files that define benchmarks, relative to the folder, sorted, some hundred at most.

    :param suffixes: of the names that are looked at. :param defines: whether a file with this relative path
        and this text does.
    """
    found: list[str] = []
    for path in _files(folder, suffixes):
        relative = path.relative_to(folder).as_posix()
        if defines(relative, text_of(path)):
            found.append(relative)
            if len(found) == MOST_FOUND:
                break
    return sorted(found)


def text_of(path: Path) -> str:
    """The beginning of a regular file, a mebibyte at most; empty where it cannot be read."""
    try:
        if not path.is_file():  # a pipe would be waited for
            return ""
        with path.open("rb") as file:
            return file.read(_MOST_READ).decode("utf-8", "replace")
    except OSError:
        return ""


@contextmanager
def one_walk() -> Iterator[None]:
    """Within it each folder is walked once, whoever looks for files that define benchmarks: nothing changes
    there meanwhile."""
    _WALKED.append({})
    try:
        yield
    finally:
        _WALKED.pop()


def _files(
    folder: Path, suffixes: tuple[str, ...], left_out: frozenset[str] = _LEFT_OUT, most: int = _MOST_LOOKED_AT
) -> Iterator[Path]:
    if not _WALKED or left_out is not _LEFT_OUT:
        return (path for path in _walked(folder, left_out, most) if path.name.endswith(suffixes))
    known = _WALKED[-1]
    if folder not in known:
        known[folder] = list(_walked(folder, left_out, most))
    return (path for path in known[folder] if path.name.endswith(suffixes))


def _walked(folder: Path, left_out: frozenset[str], most: int) -> Iterator[Path]:
    looked_at = 0
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(one for one in folders if one not in left_out and not one.startswith("."))
        for name in sorted(names):
            looked_at += 1
            if looked_at > most:
                return
            yield Path(parent, name)


def built_files(folder: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    """The files that a build may have made, where their names end so."""
    return _files(folder, suffixes, _NOT_BUILT, _MOST_BUILT)


def programs_of(
    folder: Path, named: Sequence[str], marks: tuple[bytes, ...], what: str, ctx: HarnessContext
) -> list[SuiteProgram]:
    """The programs with benchmarks that the build of the project has made. They run in the folder.

    :param named: their paths relative to the folder; where there are none, those below the folder are taken
        that hold one of the marks. :param what: they were built with, for messages.
    :raises JobFailed: where one that is named is no program; without any, the user is told.
    """
    for name in named:
        if not os.access(folder / name, os.X_OK) or not (folder / name).is_file():
            raise JobFailed(f"{name} is not a program in {folder}", "build it by `execute.pre_run`")
    paths = [folder / name for name in named] or [
        path for path in built_files(folder, ("",)) if _is_program_with(path, marks)
    ]
    if not paths:
        ctx.note(f"no program in {folder} was built with {what}: build it by `execute.pre_run`, or name it")
    return [SuiteProgram((str(path.absolute()),), folder, os.path.relpath(path, folder)) for path in paths]


def _is_program_with(path: Path, marks: tuple[bytes, ...]) -> bool:
    if ".so" in path.suffixes or not os.access(path, os.X_OK) or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            if file.read(4) != b"\x7fELF":
                return False
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return any(content.find(mark) >= 0 for mark in marks)
    except OSError:
        return False


def needed(tool: str, hint: str) -> str:
    """The path of a program that must be there.

    :raises CollectorUnavailable: where it is not; the hint says what installs it.
    """
    if path := shutil.which(tool):
        return path
    raise CollectorUnavailable(f"{tool} is not installed", hint)


def output_of(
    ctx: HarnessContext,
    argv: Sequence[str],
    folder: Path,
    environ: Mapping[str, str] = _NOTHING,
    hint: str = "run it by hand to see more",
) -> str:
    """What a program writes to its standard output.

    :raises JobFailed: where it ends with a status other than 0, with the last lines of what it wrote.
    """
    done = ctx.run(argv, folder, environ)
    if done.status:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()[-_LINES:]
        shown = ":\n" + "\n".join("  " + line for line in lines) if lines else ""
        raise JobFailed(f"{' '.join(argv)!r} ended with status {done.status}{shown}", hint)
    return done.stdout


def samples_in(seconds: float) -> int:
    """How many samples of a benchmark a process takes in so many seconds, at most."""
    return min(max(round(seconds / _SAMPLE), _SAMPLES), MOST_SAMPLES)


def shared(iterations: int, seconds: float) -> tuple[int, int]:
    """How many samples so many operations make in so many seconds, one at least, and how many each has."""
    samples = max(1, min(samples_in(seconds), iterations))
    return samples, iterations // samples


def exactly(text: str) -> str:
    """The regular expression of tools in Go and C++ that matches this text alone. In those of POSIX `]` and
    `}` may not be escaped; the former stands for itself, the latter safely in brackets."""
    return "^" + _SPECIAL.sub(r"\\\g<0>", text).replace("}", "[}]") + "$"


def why_not(done: ToolOutput) -> str:
    """How a program ended, with the last line that it wrote."""
    last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
    return ": ".join([f"it ended with status {done.status}", *last])


def json_of(text: str, what: str) -> Any:
    """The value of a JSON text.

    :param what: has written it, for the message. :raises JobFailed: where it is none.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise JobFailed(f"{what} wrote no JSON: {problem}", "is this version of it supported?") from None


def shortened(text: str, most: int = 200) -> str:
    """The last line of what a program wrote that says something, as a reason; empty without any."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:most] if lines else ""


# -- programs in Python, which run with the Python of their project


def python_param() -> Any:
    """The parameter `python` of harnesses of Python."""
    return param(
        "",
        metavar="<path>",
        help="Run the benchmarks with this Python. By default it is `.venv/bin/python` of the working copy, "
        "or else `python3` of the PATH.",
    )


def path_param() -> Any:
    """The parameter `path` of harnesses of Python."""
    return param(
        (),
        metavar="<folder>",
        help="Look for modules in this folder of the working copy first, as in `src`; may be given several "
        "times. Without it the project is the one that is installed.",
    )


def python_of(
    folder: Path, given: str, modules: Mapping[str, str], path: Sequence[str], ctx: HarnessContext
) -> str:
    """The absolute path of the Python of a project.

    :param given: what the user names: a path relative to the folder, or a program on the PATH; may be empty.
    :param modules: that it must have, to the names by which they are installed. :param path: the parameter of
        that name; without it the user is told where all versions run the same code.
    :raises CollectorUnavailable: where there is no such Python, or a module is missing.
    """
    own = folder / ".venv" / "bin" / "python"
    name = given or (str(own) if os.access(own, os.X_OK) else "python3")
    found = shutil.which(str(folder / name) if os.sep in name else name)
    if found is None:
        raise CollectorUnavailable(f"there is no Python {name!r}", "name one by the parameter `python`")
    python = str(Path(found).absolute())  # a link of a virtual environment is not followed
    told = output_of(ctx, (python, "-c", _MISSING, *modules), folder).strip().rpartition("\n")[2]
    lacking, editable = json_of(told, python)
    missing = [modules[one] for one in lacking]
    for place in () if path else _in_other_copies(folder, editable):
        ctx.note(
            f"{place} is installed in editable mode in {python}, so that every version runs the code that "
            "lies there: name the folders of modules by the parameter `path`, e.g. `params: {path: [src]}`"
        )
    if missing:
        what = " and ".join(missing)
        raise CollectorUnavailable(
            f"{python} has no {what}",
            f"install it by `{python} -m pip install {' '.join(missing)}`, or name another Python by the "
            "parameter `python`",
        )
    return python


def _in_other_copies(folder: Path, urls: Sequence[str]) -> Iterator[Path]:
    """The folders that are installed from outside of a working copy, which has them, too."""
    for url in urls:
        place = Path(unquote(urlsplit(url).path))
        if place.is_relative_to(folder):
            continue
        above = [one for one in folder.parents if place.is_relative_to(one)]
        if any((folder / place.relative_to(one)).is_dir() for one in above):
            yield place


def python_words(python: str, folder: Path, path: Sequence[str]) -> tuple[str, ...]:
    """What starts a Python that looks for modules in these folders of a working copy first."""
    if not path:
        return (python,)
    return (python, "-c", _WITH_MODULES, os.pathsep.join(str(folder / one) for one in path))


def plain_python(argv: Sequence[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """The same words without the program that puts folders in front, and the variable that does so, too: what
    is recorded must not become another process."""
    if tuple(argv[1:3]) != ("-c", _WITH_MODULES):
        return tuple(argv), {}
    return (argv[0], *argv[4:]), {"PYTHONPATH": argv[3]}


def copy_of(name: str, scratch: Path) -> Path:
    """The copy of a script that lies here, beside nothing that a project could import by mistake."""
    return Path(shutil.copy(Path(__file__).with_name(name), scratch))
