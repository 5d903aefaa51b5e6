"""The engine `stap`: a generated script for SystemTap, which needs root and the headers of the kernel.

The script writes a line for each entry and exit. These are converted to the records of the engine `ebpf`,
whose decoder reads them.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from array import array
from collections.abc import Mapping
from pathlib import Path
from shutil import which
from typing import ClassVar, Final

from perun.collect._calls.sizes import Size, Term
from perun.collect.trace.engines import EngineContext, TraceRecording, nothing_recorded
from perun.collect.trace.engines.ebpf import EbpfEngine
from perun.collect.trace.plan import TracePlan
from perun.core.process.command import outcome
from perun.native.parameters import REGISTERS

_WRAPPER: Final = """\
import os, signal, sys
pid = os.fork()
if not pid:
    try:
        os.execvp(sys.argv[2], sys.argv[2:])
    finally:
        os._exit(127)
signal.signal(signal.SIGINT, signal.SIG_IGN)
status = os.waitpid(pid, 0)[1]
with open(sys.argv[1], "w") as file:
    file.write(str(status))
"""
"""Runs the command and writes its wait status into a file: SystemTap itself ends with a status of its own."""
_READERS: Final = {
    (1, True): "user_int8",
    (1, False): "user_uint8",
    (2, True): "user_int16",
    (2, False): "user_uint16",
    (4, True): "user_int32",
    (4, False): "user_uint32",
    (8, True): "user_int64",
    (8, False): "user_int64",
}
_MODULES: Final = "/proc/modules"
"""The file that kernels have which load modules."""
_NOT_READ: Final = "-9223372036854775807 - 1"
_SIZED: Final = 1 << 62
_EXIT: Final = 1 << 63
_BATCH: Final = 1 << 16


class StapEngine(EbpfEngine):
    """Runs the command under SystemTap with a generated script."""

    name: ClassVar[str] = "stap"
    switches: ClassVar[Mapping[str, str]] = {
        "dynamic-probing": "SystemTap attaches its probes once; use --engine ebpf",
        "timed-sampling": "SystemTap attaches its probes once; use --engine ebpf",
    }

    def __init__(self, environ: Mapping[str, str], cache: Path | None = None) -> None:
        super().__init__(environ, cache)
        self._tool = which("stap", path=environ.get("PATH", os.defpath)) or ""

    def unavailable(self, plan: TracePlan | None = None) -> tuple[str, str]:
        """See :meth:`TraceEngine.unavailable`: checks for SystemTap, what the kernel needs, and root."""
        if os.uname().machine != "x86_64":
            return f"it needs x86-64, but this machine is {os.uname().machine}", ""
        if not self._tool:
            return "SystemTap is not installed", "install it with: apt-get install systemtap"
        release = os.uname().release
        if not os.path.exists(_MODULES):
            return f"the kernel {release} loads no modules, which SystemTap needs", "use --engine ebpf"
        if not os.path.isdir(f"/lib/modules/{release}/build"):
            hint = f"install them with: apt-get install linux-headers-{release}"
            return f"the headers of the kernel {release} are not installed", hint
        if os.geteuid():
            return "SystemTap loads a kernel module, which only root can do", "run Perun as root"
        if plan and plan.throws:
            return "its probes crash programs that throw exceptions", "trace it with --engine ebpf"
        return "", ""

    def record(self, plan: TracePlan, context: EngineContext) -> TraceRecording:
        """Run the command under SystemTap."""
        script, lines, records = (context.folder / name for name in ("trace.stp", "trace.txt", "records"))
        script.write_text(script_of(plan), "utf-8", "surrogateescape")
        wrapper, status = context.folder / "command.py", context.folder / "status"
        wrapper.write_text(_WRAPPER, "utf-8")
        command = shlex.join(
            [sys.executable, "-I", "-S", str(wrapper), str(status), *context.run.command().argv]
        )
        cache = () if context.cached else ("--disable-cache",)
        argv = [self._tool, *cache, "-g", "-s", "64", "-o", str(lines), "-c", command, str(script)]
        sample, errors = context.execute(argv, context.run.environ)
        if not lines.is_file() and sample.interruption is not None:
            raise sample.interruption
        if not lines.is_file():
            reason = "; ".join(errors) or f"it {outcome(sample.status)}"
            raise nothing_recorded("SystemTap", sample, f": {reason}", "use --engine ebpf")
        _convert(lines, records)
        with contextlib.suppress(OSError, ValueError):  # where the command was stopped it is not written
            sample = sample._replace(status=int(status.read_text("ascii")))
        return TraceRecording(self._calls(plan, records), sample, errors)


def script_of(plan: TracePlan) -> str:
    """The script for `stap`, which traces the command and its child processes.

    It writes a line `time thread number kind sum` for each entry (kind 0, or 2 with the sum of a size) and
    each exit (kind 1).
    """
    blocks = []
    for number, probe in enumerate(plan.probes):
        place = f"process({_quoted(probe.path)}).function({_quoted(probe.function.symbol)})"
        sized = probe.size is not None
        before = f"  {_sum(probe.size)}\n" if probe.size is not None else ""
        blocks.append(_block(f"{place}.call", before, number, 2 if sized else 0, "sum" if sized else "0"))
        blocks.append(_block(f"{place}.return", "", number, 1))
    for number, pair in enumerate(plan.pairs, len(plan.probes)):
        for kind, probes in ((0, pair.start), (1, pair.end)):
            for provider, name in sorted({(one.provider, one.name) for one in probes}):
                mark = f"provider({_quoted(provider)}).mark({_quoted(name)})"
                line = f"statement({_quoted('*@' + name)})"
                place = f"process({_quoted(pair.path)}).{mark if provider else line}"
                blocks.append(_block(place, "", number, kind))
    return "# Made by perun collect trace.\n" + "".join(blocks)


def _block(place: str, before: str, number: int, kind: int, total: str = "0") -> str:
    line = f'printf("%d %d {number} {kind} %d\\n", gettimeofday_ns(), tid(), {total})'
    return f"probe {place} {{\n  if (!target_set_pid(pid())) next\n{before}  {line}\n}}\n"


def _sum(size: Size) -> str:
    if size.register >= 0:
        start = f'u_register("{REGISTERS[size.register]}")'
    else:
        start = f'user_int64(u_register("rsp") + {size.stack})'
    terms = " + ".join(f"({term.factor}) * {_term(term)}" for term in size.terms)
    return f"sum = 0\n  try {{\n    start = {start}\n    sum = {terms}\n  }} catch {{ sum = {_NOT_READ} }}"


def _term(term: Term) -> str:
    value = "start"
    for offset in term.offsets[:-1]:
        value = f"user_int64({value} + {offset})"
    if term.offsets:
        return f"{_READERS[term.width, term.signed]}({value} + {term.offsets[-1]})"
    bits = 64 - 8 * term.width
    if not bits:
        return value
    # The script has signed numbers of 64 bits, and its shift to the right keeps the sign.
    return f"(({value} << {bits}) >> {bits})" if term.signed else f"({value} & {(1 << 8 * term.width) - 1})"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _convert(lines: Path, records: Path) -> None:
    """Convert the lines of the script to records; lines of another form are dropped."""
    words = array("Q")
    with open(lines, encoding="ascii", errors="replace") as source, open(records, "wb") as file:
        for line in source:
            fields = line.split()
            if len(fields) != 5:
                continue
            try:
                time, thread, number, kind, total = map(int, fields)
            except ValueError:
                continue
            flags = _EXIT if kind == 1 else _SIZED if kind == 2 else 0
            words.extend((time, thread | number << 32 | flags))
            if kind == 2:
                words.append(total & 0xFFFFFFFFFFFFFFFF)
            if len(words) >= _BATCH:
                words.tofile(file)
                del words[:]
        words.tofile(file)
