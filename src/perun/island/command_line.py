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
from perun.core.wording import counted
from perun.island import opening, statistics, timeline
from perun.island.opening import OpenRecording
from perun.island.options import RunnerOptions
from perun.island.program_runner import PythonProgram, limits_of, run, this_python
from perun.island.statistics import SECOND, Consumption, Usage
from perun.island.supervisor import end_as
from perun.island.timeline import printable
from perun.plugin.params import specs

# The report of a recorded run, as text for people and as JSON: what was used, by whom, and where the time
# went.

SCHEMA: Final = "perun.island/1"
_MOST: Final = 40
"""Rows of a table of files, sockets or threads that the text has; the JSON has all."""


def as_json(run: OpenRecording) -> dict[str, Any]:
    """The report as values for JSON: times in seconds since the start of the run, amounts in their units."""
    result = run.result
    return {
        "schema": SCHEMA,
        "command": result.argv,
        "ended": result.ending,
        "status": None if result.status < 0 else result.status,
        "live": run.live,
        "user": result.user,
        "system": result.system,
        "limits": list(result.limits),
        "burst": result.burst,
        "stop_rule": run.rule,
        "stops": len(run.stops),
        "stopped": run.by_rule,
        "unattributed": run.unattributed._asdict(),
        "processes": run.processes,
        "threads": [
            {
                "process": one.process,
                "name": one.name,
                "created": lane.created / SECOND,
                "destroyed": lane.destroyed / SECOND,
                "stopped": one.by_rule,
                "ambiguous": one.ambiguous,
            }
            for one, lane in zip(run.threads, run.lanes, strict=True)
        ],
        "objects": [
            {
                **one._asdict(),
                "opened": one.opened / SECOND,
                "closed": None if one.closed is None else one.closed / SECOND,
            }
            for one in run.objects
        ],
        "usage": [row._asdict() for row in run.usage],
        "time": [one._asdict() for one in statistics.consumption(run.usage)],
        "notes": run.notes,
    }


def as_text(run: OpenRecording) -> Iterator[str]:
    """The lines of the report."""
    yield from _summary(run)
    rows = run.usage
    used = [row for row in rows if row.resource]
    yield from _table("Resources", used, lambda row: row.subtype)
    islands = {row.island for row in used}
    if len(islands) > 1:
        yield from _table("Islands", used, lambda row: f"{row.island}  {row.subtype}")
    left_open = {(one.process, one.object) for one in run.objects if one.closed is None}

    def shown(row: Usage) -> str:
        state = "  (open)" if (row.process, row.object) in left_open else ""
        return f"{row.object}  {row.subtype}{state}"

    yield from _table("Files", [row for row in used if row.type == "disk" and row.object], shown)
    yield from _table("Sockets", [row for row in used if row.type == "net" and row.object], shown)
    if len(run.threads) > 1:
        yield from _table("Threads", used, lambda row: f"{_thread(run, row)}  {row.subtype}")
    yield from _times(statistics.consumption(rows))
    for note in run.notes:
        yield f"note: {note}"


def _summary(run: OpenRecording) -> Iterator[str]:
    result = run.result
    yield f"Island of {printable(' '.join(result.argv))}"
    cpu = f"user {result.user:.3f} s, system {result.system:.3f} s"
    yield f"ended: {result.ending}, after {run.live:.3f} s ({cpu})"
    if result.limits:
        held = f", cpu held by {result.held}" if result.held else ""
        yield f"limits: {', '.join(result.limits)}, burst {result.burst:g} s{held}"
    if run.stops:
        seconds = ", ".join(f"{seconds:.3f} s by the rule {rule}" for rule, seconds in _verdicts(run))
        yield f"stopped: {counted(len(run.stops), 'time')}; of the lives of all threads {seconds}"
        if ambiguous := sum(one.ambiguous for one in run.threads):
            yield f"ambiguous: {ambiguous:.3f} s, in which calls waited while the program was stopped"
    read, written = run.unattributed
    if read >= 0 and written >= 0:
        yield f"unattributed: {_amount(read, 'B')} read, {_amount(written, 'B')} written by no recorded call"


def _verdicts(run: OpenRecording) -> Iterator[tuple[str, float]]:
    """What each rule counts as stopped; the one that holds here first."""
    yield run.rule, run.by_rule[run.rule]
    yield from ((rule, seconds) for rule, seconds in run.by_rule.items() if rule != run.rule)


def _table(title: str, rows: Sequence[Usage], key: Any) -> Iterator[str]:
    found = sorted(statistics.totals(rows, key).items(), key=lambda pair: -pair[1].seconds)
    if not found:
        return
    yield ""
    yield f"{title:<46} {'calls':>10} {'amount':>14} {'seconds':>12}"
    for name, row in found[:_MOST]:
        amount = _amount(row.amount, row.unit)
        yield f"  {printable(name):<44} {row.calls:>10,} {amount:>14} {row.seconds:>12.6f}"
    if len(found) > _MOST:
        yield f"  and {len(found) - _MOST} more, which --format json lists"


def _thread(run: OpenRecording, row: Usage) -> str:
    return f"{row.process}: {row.thread}" if len(run.processes) > 1 else row.thread


def _times(tables: Sequence[Consumption]) -> Iterator[str]:
    shown = tables if len(tables) > 2 else tables[-1:]
    yield ""
    yield f"{'Time consumption':<46} {'seconds':>12} {'of live':>9}"
    for table in [*shown[:-1][:_MOST], shown[-1]]:
        yield f"  {printable(table.name)}"
        for line, seconds in [*table.seconds.items(), ("live", table.live)]:
            share = seconds / table.live if table.live else 0.0
            yield f"    {line:<42} {seconds:>12.6f} {share:>9.2%}"


def _amount(amount: float, unit: str) -> str:
    if unit == "s":
        return f"{amount:.6f} s"
    return f"{amount:,.0f} {unit}".rstrip()


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


def _run(options: RunnerOptions, program: PythonProgram) -> int:
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
    for path, writer in ((options.chrome_trace, timeline.chrome), (options.speedscope, timeline.speedscope)):
        if path:
            _write(path, writer(found.lanes, found.spans(), found.stops, name=title, exporter=name))


def _lines(options: RunnerOptions, found: OpenRecording) -> Iterator[str]:
    if options.format == "json":
        yield json.dumps(as_json(found), indent=1) + "\n"
    else:
        yield from (f"{line}\n" for line in as_text(found))
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


def _parsed(words: Sequence[str]) -> tuple[RunnerOptions, PythonProgram]:
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
    return options, PythonProgram(python, [*interpreter_options, *options.python_option], rest)


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
