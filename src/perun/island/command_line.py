"""`python -m perun.island [options] prog.py args`, or `-m module`, or `-c code`: runs a program in an island.

The program runs as it does alone: its output, its exit code, the signal that ends it. At its end, whatever
ended it, the report goes to the standard error.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from perun.core import atomic
from perun.core.errors import PerunError, UsageError
from perun.island import exports, opening, report, timeline
from perun.island.opening import Recorded
from perun.island.options import RunnerOptions
from perun.island.program_runner import Program, limits_of, run, this_python
from perun.island.supervisor import end_as
from perun.plugin.params import specs

TIMELINES: Final = {
    "text": timeline.text,
    "json": timeline.json_lines,
    "csv": timeline.comma_separated,
}


def main(words: Sequence[str] | None = None) -> NoReturn:
    """Run the program that the command line names, and end as it does."""
    options, program = _parsed(sys.argv[1:] if words is None else words)
    try:
        status = _run(options, program)
    except PerunError as problem:
        _complain(problem)
        raise SystemExit(problem.exit_code) from None
    except KeyboardInterrupt:  # while the report is made; the program has ended
        raise SystemExit(128 + signal.SIGINT) from None
    end_as(status)


def _run(options: RunnerOptions, program: Program) -> int:
    """Run the program and report; the wait status of the program."""
    with contextlib.ExitStack() as stack:
        folder = options.record_to or stack.enter_context(tempfile.TemporaryDirectory(prefix="perun-island-"))
        status = run(program, options, Path(folder)).status
        try:
            _report(options, Path(folder))
        except PerunError as problem:  # the program ends as it does, whatever becomes of the report
            _complain(problem)
    return status


def _report(options: RunnerOptions, folder: Path) -> None:
    name = "python -m perun.island"
    wanted = (options.output, options.chrome_trace, options.speedscope)
    if options.record_to and not any(wanted):
        return
    found = opening.read(folder)
    title = " ".join(found.result.argv)
    if options.output:
        _write(options.output, _lines(options, found))
    elif not options.record_to:
        with contextlib.suppress(OSError):  # nobody reads it
            sys.stderr.writelines(_lines(options, found))
            sys.stderr.flush()
    for path, writer in ((options.chrome_trace, exports.chrome), (options.speedscope, exports.speedscope)):
        if path:
            _write(path, writer(found.lanes, found.spans(), found.stops, name=title, exporter=name))


def _lines(options: RunnerOptions, found: Recorded) -> Iterator[str]:
    if options.format == "json":
        yield json.dumps(report.as_json(found), indent=1) + "\n"
    else:
        yield from (f"{line}\n" for line in report.as_text(found))
    if options.timeline != "none":
        yield "\n" * (options.format == "text")
        yield from TIMELINES[options.timeline](found.lanes, found.spans(), found.stops)


def _write(path: str, pieces: Iterable[str]) -> None:
    try:
        with atomic.writing(Path(path), make_folder=False) as file:
            for piece in pieces:
                file.write(piece.encode("utf-8", "surrogateescape"))
    except OSError as problem:
        raise UsageError(f"cannot write {path}: {problem.strerror}") from None


def _complain(problem: PerunError) -> None:
    hint = f"\n{problem.hint}" if problem.hint else ""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"perun.island: {problem.message}{hint}\n")


def _parsed(words: Sequence[str]) -> tuple[RunnerOptions, Program]:
    """The options, and the program behind them.

    :raises SystemExit: for a wrong command line, after the message.
    """
    own, rest = _split(words)
    parser = _parser()
    given = parser.parse_args(own)
    if not rest:
        parser.error("name a program: prog.py, -m MODULE or -c CODE")
    if rest[0] in ("-m", "-c") and len(rest) < 2:
        parser.error(f"{rest[0]} needs a value")
    values: dict[str, Any] = {spec.name: getattr(given, spec.name) for spec in specs(RunnerOptions)}
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    options = RunnerOptions(**{**values, **lists})
    try:
        limits_of(options)
    except UsageError as problem:
        parser.error(problem.message)
    python, interpreter_options = this_python()
    if options.python:
        found = shutil.which(options.python)
        if not found:
            parser.error(f"--python: there is no program {options.python!r}")
        python, interpreter_options = os.path.abspath(found), []
    return options, Program(python, [*interpreter_options, *options.python_option], rest)


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The own options, and the program with its arguments: from the first word that is no option of ours."""
    with_value = {flag for spec in specs(RunnerOptions) if spec.type is not bool for flag in spec.flags}
    position = 0
    while position < len(words):
        word = words[position]
        if word == "--":
            return list(words[:position]), list(words[position + 1 :])
        for flag in ("-m", "-c"):
            if word.startswith(flag) and not word.startswith("--"):
                value = [word[2:]] if word[2:] else []
                return list(words[:position]), [flag, *value, *words[position + 1 :]]
        if not word.startswith("-") or word == "-":
            return list(words[:position]), list(words[position:])
        position += 2 if word in with_value else 1
    return list(words), []


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m perun.island",
        usage="%(prog)s [options] (prog.py | -m MODULE | -c CODE) [argument ...]",
        description="Run a Python program; report what threads, files and sockets used, and where time went.",
        allow_abbrev=False,
    )
    for spec in specs(RunnerOptions):
        info = spec.info
        settings: dict[str, Any] = {
            "dest": spec.name,
            "help": info.help.replace("%", "%%"),
            "default": spec.default,
        }
        if spec.type is bool:
            settings["action"] = "store_true"
        elif spec.type in (int, float):
            settings.update(type=spec.type, metavar=info.metavar)
        elif spec.type is str:
            settings.update(choices=info.choices or None, metavar=info.metavar or None)
        else:
            settings.update(action="append", default=[], metavar=info.metavar)
        parser.add_argument(*spec.flags, **settings)
    return parser
