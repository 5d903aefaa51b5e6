"""Running the preprocessor of the C compiler."""

from __future__ import annotations

import os
import re
import resource
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from perun.errors import CollectorUnavailable
from perun.process import programs

from .commands import flags_for
from .standard_headers import CONTENT
from .unit import ReadOptions, Unreadable

_COMPILERS = ("cc", "gcc", "clang")
_MISSING = re.compile(
    r"^(?P<file>[^\n]+?):(?P<line>\d+):(?:\d+:)? fatal error: "
    r"'?(?P<header>[^\n:']+?)'?(?:: No such file or directory| file not found)",
    re.MULTILINE,
)
_ERROR = re.compile(
    r"^(?P<file>[^\n]+?):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<reason>[^\n]+)", re.MULTILINE
)
_UNIVERSAL = re.compile(r"\\U(000[0-9a-f]{5})")
"""How gcc writes letters of names that are not ASCII."""
_MOST_MISSING = 500
_DEPTH = 8
"""How many folders deep substitutes for headers lie: an `#include` may begin with as many `../`."""
_FLAGS = ("-E", "-x", "c", "-w", "-U_FORTIFY_SOURCE", "-D__NO_INLINE__", "-D__NO_CTYPE")


class PreprocessorFailed(Exception):
    """The preprocessor was ended, or did not end in time; why, as a sentence."""


class Preprocessed(NamedTuple):
    """Text with line markers, and what was wrong."""

    text: str
    problems: tuple[Unreadable, ...]


def missing() -> tuple[str, str]:
    """What is missing to read C sources, and how it is installed; two empty texts where nothing is."""
    if any(shutil.which(name) for name in _COMPILERS):
        return "", ""
    return (
        "No C compiler is installed, and its preprocessor is needed to read C sources.",
        "Install gcc or clang, such as by 'apt install gcc'.",
    )


def compiler() -> str:
    """The C compiler whose preprocessor is used.

    :raises CollectorUnavailable: if there is none.
    """
    for name in _COMPILERS:
        path = shutil.which(name)
        if path:
            return path
    raise CollectorUnavailable(*missing())


def preprocess(path: str, options: ReadOptions) -> Preprocessed:
    """A source file with its macros expanded and its headers included.

    A header that does not exist is replaced by an empty one, and listed in `problems`; so are other errors of
    the preprocessor, such as `#error`, and that the compilation database has no flags for it.

    :raises PreprocessorFailed: if it takes too long, or needs more than the limits of this process.
    """
    given = flags_for(path, options.compile_commands) if options.compile_commands else None
    flags = [*(given.flags if given else ()), *(f"-I{os.path.abspath(one)}" for one in options.include)]
    flags += [f"-D{one}" for one in options.define]
    folder = given.folder if given else None
    source = os.path.abspath(path) if folder or path.startswith("-") else path
    with tempfile.TemporaryDirectory(prefix="perun-headers-") as scratch:
        deep = Path(scratch, *("d" * _DEPTH))
        deep.mkdir(parents=True)
        command = [compiler(), *_FLAGS, *flags, "-idirafter", str(deep), source]
        missing: dict[str, Unreadable] = {}
        while True:
            code, text, said = _output(command, folder, options.timeout)
            absent = _MISSING.search(said)
            if (
                absent is None
                or len(missing) > _MOST_MISSING
                or not _substitute(deep, absent["header"], missing)
            ):
                break
            missing[absent["header"]] = Unreadable(
                _seen(absent["file"], folder), int(absent["line"]), f"there is no header '{absent['header']}'"
            )
        errors = list(_ERROR.finditer(said))
        if code and not errors:
            last = said.strip().rpartition("\n")[2]
            raise PreprocessorFailed(f"the preprocessor failed: {last or f'it ended with status {code}'}")
        problems = list(_without_flags(path, options)) if given is None else []
        problems += [one for name, one in missing.items() if name not in CONTENT]
        problems += [
            Unreadable(_seen(one["file"], folder), int(one["line"]), one["reason"].strip())
            for one in errors
        ]
        text = text.replace("\r", " ").replace("\0", " ")
        return Preprocessed(_UNIVERSAL.sub(lambda match: chr(int(match.group(1), 16)), text), tuple(problems))


def _output(command: Sequence[str], folder: str | None, timeout: float) -> tuple[int, str, str]:
    """The exit code of the preprocessor, its output and its messages, which the limits of files hold for."""
    environ = {**os.environ, "LC_ALL": "C"}
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            code = programs.run(
                command, cwd=folder, environ=environ, stdout=output, stderr=errors, timeout=timeout
            ).code
        except programs.TimeoutExpired:
            raise PreprocessorFailed(
                f"the preprocessor did not end within {timeout:g} s: the source may include a device or a "
                "pipe, or have macros that grow without end; --timeout gives it more"
            ) from None
        if os.fstat(output.fileno()).st_size >= (limit := resource.getrlimit(resource.RLIMIT_FSIZE)[0]) > 0:
            raise PreprocessorFailed(f"it has more than {limit >> 20} MiB when it is preprocessed")
        output.seek(0)
        errors.seek(0)
        return code, output.read().decode("utf-8", "replace"), errors.read().decode("utf-8", "replace")


def _without_flags(path: str, options: ReadOptions) -> Iterator[Unreadable]:
    """That there are no flags of a source, where those of others are known."""
    if options.compile_commands:
        reason = f"{options.compile_commands} does not list it, so it is read without the flags of a build"
        yield Unreadable(path, 1, reason)


def _seen(file: str, folder: str | None) -> str:
    """A file that the preprocessor names, from where it was started."""
    return os.path.join(folder, file) if folder else file


def _substitute(deep: Path, header: str, missing: dict[str, Unreadable]) -> bool:
    """Put a substitute where the preprocessor finds it; false where it cannot be found."""
    if header in missing or os.path.isabs(header) or header.count("../") >= _DEPTH:
        return False
    target = Path(os.path.normpath(deep / header))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(CONTENT.get(header, ""), encoding="utf-8")
    return True
