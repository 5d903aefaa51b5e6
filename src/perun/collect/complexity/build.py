"""Compiles programs that call the runtime at the entry and exit of each function."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from perun.collect._calls.optimizations.settings import OptimizationParams
from perun.collect._common import runs as common
from perun.core.errors import CollectorUnavailable, JobFailed, UsageError
from perun.core.process import programs
from perun.plugin.params import param

_C: Final = (".c",)
_CPP: Final = (".cpp", ".cc", ".cxx", ".c++", ".C", ".cp")
_HEADERS: Final = (".h", ".hh", ".hpp", ".hxx", ".h++", ".H", ".inl", ".ipp", ".tcc")
_INSTRUMENT: Final = (
    "-g",
    "-fno-omit-frame-pointer",
    "-fno-optimize-sibling-calls",
    "-finstrument-functions",
)
_OF_GCC: Final = (
    # Otherwise gcc changes the parameters of functions, and merges equal functions.
    "-fno-ipa-cp",
    "-fno-ipa-sra",
    "-fno-ipa-icf",
    # Functions that are not declared inline are really called, so that their parameters can be read.
    "-fno-inline-functions",
    "-fno-inline-small-functions",
    "-fno-inline-functions-called-once",
)
_OF_CLANG: Final = ("-finline-hint-functions",)
_SYSTEM_HEADERS: Final = "-finstrument-functions-exclude-file-list=/usr/include,/usr/lib/gcc"
_COMPILERS: Final = ("cc", "gcc", "clang", "c89", "c99"), ("c++", "g++", "clang++")
_ERRORS: Final = 15


class BuildTarget(NamedTuple):
    """What to compile.

    :param sources: relative to the folder of the run. :param options: of the compiler, as in a shell.
    :param folder: where the program goes. :param whole: also instrument functions of system headers.
    """

    sources: Sequence[Path]
    options: str
    folder: Path
    whole: bool = False


def build_files(target: BuildTarget, cwd: Path, environ: Mapping[str, str]) -> Path:
    """Compile the sources, each by itself, and link them; return the path of the program.

    :raises UsageError: where a file is not a C or C++ source. :raises JobFailed: where it does not compile.
    :raises CollectorUnavailable: where no compiler is installed.
    """
    sources = _sources(target.sources, cwd)
    folder = cwd / target.folder
    folder.mkdir(parents=True, exist_ok=True)
    includes = [f"-I{path}" for path in dict.fromkeys((cwd / path).parent for path in target.sources)]
    objects = []
    compilers = {is_cpp: _compiler(is_cpp, environ) for is_cpp in {_is_cpp(source) for source in sources}}
    options = shlex.split(target.options)
    for number, source in enumerate(sources):
        compiler = compilers[_is_cpp(source)]
        compiled = str(folder / f"{source.stem}-{number}.o")
        flags = instrumenting(compiler, environ, whole=target.whole)
        _run([*compiler, *options, *flags, *includes, "-c", str(source), "-o", compiled], cwd, environ)
        objects.append(compiled)
    program = folder / sources[0].stem
    linker = compilers[max(compilers)]
    _run([*linker, *objects, "-g", "-pthread", "-o", str(program), *options, "-lm"], cwd, environ)
    for name in objects:
        os.unlink(name)
    return program


def build_command(command: str, folder: Path, cwd: Path, environ: Mapping[str, str], *, whole: bool) -> None:
    """Run the build command with wrappers of the compilers first in its PATH, which add the options.

    :param folder: where the wrappers go. :raises JobFailed: where the command fails.
    """
    from shutil import which

    folder.mkdir(parents=True, exist_ok=True)
    path = environ.get("PATH", os.defpath)
    names = {*_COMPILERS[0], *_COMPILERS[1]}
    names |= {os.path.basename(shlex.split(environ[key])[0]) for key in ("CC", "CXX") if environ.get(key)}
    for name in sorted(names):
        real = which(name, path=path)
        if real is None:
            continue
        flags = shlex.join(instrumenting([real], environ, whole=whole))
        wrapper = folder / name
        wrapper.write_text(f'#!/bin/sh\nexec {shlex.quote(real)} "$@" {flags}\n')
        wrapper.chmod(0o755)
    if not any(folder.iterdir()):
        raise _no_compiler("C or C++")
    _run(["/bin/sh", "-c", command], cwd, {**environ, "PATH": f"{folder}{os.pathsep}{path}"})


def instrumenting(compiler: Sequence[str], environ: Mapping[str, str], *, whole: bool) -> list[str]:
    """The options that make the compiler call the runtime."""
    try:
        done = programs.run([*compiler, "--version"], environ=environ)
    except OSError as problem:
        raise CollectorUnavailable(
            f"cannot start the compiler {shlex.join(compiler)}: {problem.strerror}",
            "correct or unset CC and CXX in the environment",
        ) from None
    if b"clang" in done.stdout:
        return [*_INSTRUMENT, *_OF_CLANG]
    return [*_INSTRUMENT, *_OF_GCC, *([] if whole else [_SYSTEM_HEADERS])]


def missing_compiler(environ: Mapping[str, str]) -> tuple[str, str]:
    """Why C or C++ cannot be compiled, and what to do; two empty texts if both can."""
    try:
        for is_cpp in (False, True):
            instrumenting(_compiler(is_cpp, environ), environ, whole=False)
    except CollectorUnavailable as problem:
        return problem.message, problem.hint
    return "", ""


def _sources(files: Sequence[Path], cwd: Path) -> list[Path]:
    sources = []
    for file in files:
        path = cwd / file
        if not path.is_file():
            raise UsageError(
                f"--files: there is no file {file}", f"correct the path; relative paths start at {cwd}"
            )
        if path.suffix in _C or path.suffix in _CPP:
            sources.append(path)
        elif path.suffix not in _HEADERS:
            raise UsageError(
                f"--files: {file} is not a C or C++ source",
                "name files that end in .c, .cpp, or .h for a header",
            )
    if not sources:
        raise UsageError("--files (-f) names only headers", "also name the sources that include them")
    return sources


def _is_cpp(source: Path) -> bool:
    return source.suffix in _CPP


def _compiler(is_cpp: bool, environ: Mapping[str, str]) -> list[str]:
    from shutil import which

    named = environ.get("CXX" if is_cpp else "CC", "")
    if named:
        return shlex.split(named)
    path = environ.get("PATH", os.defpath)
    found = next(filter(None, (which(name, path=path) for name in _COMPILERS[is_cpp])), None)
    if found is None:
        raise _no_compiler("C++" if is_cpp else "C")
    return [found]


def _no_compiler(language: str) -> CollectorUnavailable:
    return CollectorUnavailable(
        f"no {language} compiler is installed", "install one with: apt-get install build-essential"
    )


def _run(argv: list[str], cwd: Path, environ: Mapping[str, str]) -> None:
    try:
        done = programs.run(argv, cwd=cwd, environ=environ, stderr=programs.STDOUT)
    except OSError as problem:
        raise JobFailed(
            f"cannot build in {cwd}: {argv[0]}: {problem.strerror}", "check the path and its permissions"
        ) from None
    if done.code:
        output = done.stdout.decode("utf-8", "replace").splitlines()
        errors = [line for line in output if "error" in line] or output
        shown = "\n  ".join(["", *errors[:_ERRORS]])
        raise JobFailed(
            f"the program does not compile: {shlex.join(argv)}{shown}",
            "correct the program, --build or --compile-flags",
        )


# The parameters of the complexity collector.

STORAGE: Final = 20_000


@dataclass(frozen=True)
class _ComplexityParams:
    """How to compile the program, and which calls to record."""

    target_dir: str = param(
        "",
        short="-t",
        metavar="<dir>",
        help="Keep the compiled program and the data of the build in this folder; by default, nowhere.",
    )
    files: tuple[str, ...] = param(
        (),
        short="-f",
        metavar="<path>",
        help="Compile the program from this C or C++ source (or header), and run it in place of the command, "
        "with the same arguments and workload; may be repeated.",
    )
    rules: tuple[str, ...] = param(
        (),
        short="-r",
        metavar="<func>",
        help="Record this function; may be repeated. By default, all functions of the program.",
    )
    sampling: tuple[tuple[str, int], ...] = param(
        (),
        short="-s",
        metavar="<func> <int>",
        pair=("func", "sample"),
        help="Record only one in <int> calls of this function; may be repeated.",
    )
    internal_data_filename: str = param(
        "",
        short="-if",
        metavar="<path>",
        help="Keep the recording in this folder, which is relative to the target directory.",
    )
    internal_storage_size: int = param(
        STORAGE,
        short="-is",
        metavar="<int>",
        minimum=1,
        help="Number of calls that each thread buffers before it writes them.",
    )
    internal_direct_output: bool = param(
        False,
        short="-id",
        help="Has no effect: the recording has every call, however the program ends.",
    )
    build: str = param(
        "",
        metavar="<command>",
        help="Run this command to build the program; the compilers that it calls add the recording of calls.",
    )
    compile_flags: str = param("-O2", metavar="<flags>", help="Options of the compiler for --files.")
    binary: str = param(
        "",
        short="-b",
        metavar="<path>",
        help="The program to record, if the command is only a script that starts it.",
    )
    size: tuple[str, ...] = param(
        (),
        metavar="<func>=<expression>",
        help="The size of the structure that a function works on, e.g. List_search=list->size.",
    )
    ignore_failure: bool = common.ignore_failure()
    timeout: float = common.timeout(kept=True)


@dataclass(frozen=True)
class ComplexityParams(OptimizationParams, _ComplexityParams):
    """The parameters of the complexity collector, those of its own first."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for function, every in self.sampling:
            if not 1 <= every < 1 << 31:
                raise UsageError(
                    f"the sampling of {function} must be a whole number of at least 1, not {every}",
                    "correct --sampling (-s)",
                )
        for size in self.size:
            if not all(part.strip() for part in size.partition("=")):
                raise UsageError(
                    f"cannot parse --size {size!r}",
                    "write <func>=<expression>, e.g. List_search=list->size",
                )
        if self.files and self.build:
            raise UsageError("--files and --build exclude each other", "leave out one of them")
