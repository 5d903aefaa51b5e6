"""The engine `uftrace`, which patches functions of the running program; it needs no root and no rebuild."""

from __future__ import annotations

import contextlib
import glob
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Final

from perun.collect._calls.events import Calls
from perun.collect._calls.nesting import Nesting
from perun.collect.trace.engines import EngineContext, Recorded
from perun.collect.trace.engines.calibration import Correction, Way, correction
from perun.collect.trace.engines.records import pieces
from perun.collect.trace.engines.uftrace_data import Decoder, read_tasks
from perun.collect.trace.engines.uftrace_sizes import (
    argument_of,
    find_luajit,
    follows_pointers,
    read_sizes,
    script_of,
)
from perun.collect.trace.plan import Plan
from perun.errors import CollectorUnavailable
from perun.wording import counted

MAX_DEPTH: Final = 1023
"""uftrace records no calls deeper than that."""
MIN_SIZE: Final = 5
"""Bytes of a jump: shorter functions cannot be patched."""
_MAX_OPTIONS: Final = 60_000
"""Characters of options of one kind; the kernel limits those of all options together."""


class UftraceEngine:
    """Wraps `uftrace record -P`."""

    name: ClassVar[str] = "uftrace"

    def __init__(self, environ: Mapping[str, str], cache: Path | None = None) -> None:
        from shutil import which

        self.notes: list[str] = []
        self.missed = self.lost = 0
        self.method = ""
        self._tool = which("uftrace", path=environ.get("PATH", os.defpath)) or ""
        self.correction: Correction | None = None
        self._cache = cache
        self._deepest = 0

    def unavailable(self, plan: Plan | None = None) -> tuple[str, str]:
        """Whether uftrace is missing."""
        if not self._tool:
            return "uftrace is not installed", "install it with: apt-get install uftrace"
        return "", ""

    def record(self, plan: Plan, context: EngineContext) -> Recorded:
        """Run the command under uftrace."""
        if plan.throws:
            raise CollectorUnavailable(
                "uftrace cannot trace this program: it crashes programs that throw exceptions",
                "trace it as root with --engine ebpf, or build and record it with perun collect complexity",
            )
        ways = [Way.of(probe, is_emulated=True) for probe in plan.probes]
        self.correction = self.correction or correction(self, plan, context, ways, self._cache)
        data, log = context.folder / "uftrace", context.folder / "uftrace.log"
        environ = dict(context.run.environ)
        if plan.pairs:
            self.notes.append(
                "uftrace recorded no USDT probes and source lines, because it does not support them; "
                "use --engine ebpf"
            )
        options, arguments = self._options(plan)
        script = self._script(plan, context, environ)
        command = context.run.command()
        argv = [
            self._tool,
            "record",
            *("--no-event", "--no-libcall", "--force", "--color=no", "--demangle=no", "--match=regex"),
            *("--max-stack=65535", f"--logfile={log}", "-d", str(data)),
            *options,
            *(arguments if script or not self._needs_script(plan) else self._direct(plan)),
            *script,
            *command.argv,
        ]
        before = _shared_memory()
        try:
            ended = context.execute(argv, environ)
        finally:
            _remove_shared_memory(data, before)
        if not (data / "task.txt").is_file() and ended.sample.interruption is not None:
            raise ended.sample.interruption  # before anything was recorded
        if not (data / "task.txt").is_file():
            raise CollectorUnavailable(
                "uftrace recorded nothing" + _last_line(log),
                "check that the program is linked dynamically and built for this machine; or use --engine "
                "ebpf",
            )
        processes: dict[int, int] = {}
        calls = self._calls(plan, data, context.folder, processes)
        sample = ended.sample._replace(status=_status(data, ended.sample.status))
        return Recorded(calls, sample, ended.errors, processes)

    def _options(self, plan: Plan) -> tuple[list[str], list[str]]:
        """The options that name the functions to patch, and those that name the parameters to record."""
        patched, arguments = [], []
        small = []
        for probe in plan.probes:
            if probe.function.size < MIN_SIZE:
                small.append(probe.function.name)
                continue
            pattern = f"^{re.escape(probe.function.symbol)}$"
            library = f"@{os.path.basename(probe.path)}" if probe.path != plan.program else ""
            patched += ["-P", pattern + library]
            if probe.size is not None:
                arguments += ["-A", f"{pattern}@{argument_of(probe.size)}"]
        if small:
            shown = ", ".join(small[:3]) + (f" and {len(small) - 3} more" if len(small) > 3 else "")
            self.notes.append(
                f"uftrace did not trace {shown}: it cannot patch functions shorter than {MIN_SIZE} bytes"
            )
        if sum(map(len, patched)) > _MAX_OPTIONS:
            # All functions of the files, of which the decoder drops those that are not in the plan.
            libraries = {f"@{os.path.basename(probe.path)}" for probe in plan.probes}
            own = f"@{os.path.basename(plan.program)}"
            patched = ["-P", ".", *(part for one in sorted(libraries - {own}) for part in ("-P", "." + one))]
        if sum(map(len, arguments)) > _MAX_OPTIONS:
            self.notes.append(
                f"uftrace recorded no sizes of structures: {counted(len(plan.probes), 'function')} are too "
                "many for it; select some with --strategy custom --func"
            )
            arguments = []
        return patched, arguments

    def _direct(self, plan: Plan) -> list[str]:
        """The options that name the parameters to record, only for sizes that are parameters themselves."""
        return [
            part
            for probe in plan.probes
            if probe.size is not None and not follows_pointers(probe.size)
            for part in ("-A", f"^{re.escape(probe.function.symbol)}$@{argument_of(probe.size)}")
        ]

    @staticmethod
    def _needs_script(plan: Plan) -> bool:
        return any(probe.size is not None and follows_pointers(probe.size) for probe in plan.probes)

    def _script(self, plan: Plan, context: EngineContext, environ: dict[str, str]) -> list[str]:
        """Write the script that reads sizes; return the options that make uftrace run it."""
        if not self._needs_script(plan):
            return []
        library = find_luajit()
        if not library:
            self.notes.append(
                "uftrace recorded no sizes of structures: it needs LuaJIT for them; install it with: "
                "apt-get install libluajit-5.1-2"
            )
            return []
        # uftrace loads the library by a name that only its development package has.
        libraries = context.folder / "luajit"
        libraries.mkdir(exist_ok=True)
        link = libraries / "libluajit-5.1.so"
        if not link.is_symlink():
            link.symlink_to(library)
        environ["LD_LIBRARY_PATH"] = ":".join(
            filter(None, (str(libraries), environ.get("LD_LIBRARY_PATH", "")))
        )
        script = context.folder / "sizes.lua"
        script.write_text(script_of(plan.probes, context.folder / "sizes"), "utf-8")
        return ["-S", str(script)]

    def _calls(self, plan: Plan, data: Path, folder: Path, processes: dict[int, int]) -> Iterator[Calls]:
        sessions, tasks = read_tasks(data, {probe.path for probe in plan.probes})
        processes.update(tasks)
        sizes = read_sizes(folder)
        threads = sorted(int(path.stem) for path in data.glob("[0-9]*.dat"))
        epoch = min((one.start for some in sessions.values() for one in some), default=0)
        for thread in threads:
            known = sessions.get(tasks.get(thread, thread), [])
            if known:
                decoder = Decoder(plan.probes, known, epoch, sizes.pop(thread, None))
                yield from self._thread(thread, data / f"{thread}.dat", decoder)
        if self._deepest >= MAX_DEPTH:
            self.notes.append(
                f"uftrace recorded no calls nested deeper than {MAX_DEPTH + 1} levels, which is its limit; "
                "use --engine ebpf for these"
            )

    def _thread(self, thread: int, file: Path, decoder: Decoder) -> Iterator[Calls]:
        nesting = Nesting(thread, self.correction.overhead if self.correction else None)
        last = 0
        for words in pieces(file):
            events, used = decoder.events(words)
            words.consumed = used
            if len(events.time):
                last = int(events.time[-1])
                yield nesting.add(events)
        yield nesting.finish(last)
        self.missed += nesting.missed
        self.lost += decoder.lost
        self._deepest = max(self._deepest, decoder.deepest)


def _status(data: Path, status: int) -> int:
    """The wait status of the command, which uftrace writes down; `status` is that of uftrace itself."""
    found = None
    with contextlib.suppress(OSError):
        found = re.search(rb"^exit_status:(\d+)$", (data / "info").read_bytes(), re.MULTILINE)
    return int(found[1]) if found else status


def _last_line(log: Path) -> str:
    try:
        lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    except OSError:
        return ""
    return f": {lines[-1][:300]}" if lines else ""


def _shared_memory() -> set[str]:
    return set(glob.glob("/dev/shm/uftrace-*"))


def _remove_shared_memory(data: Path, before: set[str]) -> None:
    """Remove the buffers in shared memory that uftrace leaves when it is killed, of its own sessions only."""
    left = _shared_memory() - before
    if not left:
        return
    try:
        sessions = re.findall(r"sid=([0-9a-f]+)", (data / "task.txt").read_text("utf-8", "replace"))
    except OSError:
        return
    for path in left:
        if any(f"uftrace-{session}-" in path for session in sessions):
            os.unlink(path)
