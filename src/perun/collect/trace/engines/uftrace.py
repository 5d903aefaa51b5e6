"""The engine `uftrace`: patches functions of the running program, without root and without building it anew.

`uftrace record` does the recording and its files are read here. It can record parameters, but follow no
pointers: where the size of a structure lies behind one, a script that uftrace runs at each call with LuaJIT
reads it, by a system call that fails where a stray pointer would crash the program.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from perun.collect._calls.events import UNKNOWN, Calls, Events
from perun.collect._calls.nesting import Nesting
from perun.collect._calls.sizes import Size
from perun.collect._common.columns import Ints
from perun.collect._common.elf import load_segments
from perun.collect.trace.engines import EngineContext, Recorded
from perun.collect.trace.engines.records import Piece, boundaries, divided, pieces
from perun.collect.trace.plan import Plan, Probe
from perun.errors import CollectorUnavailable

MAX_DEPTH: Final = 1023
"""uftrace records no calls deeper than that."""
SMALLEST: Final = 5
"""Bytes of a jump: shorter functions cannot be patched."""
_LONGEST_OPTIONS: Final = 60_000
_ENTRY, _EXIT, _LOST, _EVENT = 0, 1, 2, 3
_LUA_LIBRARIES: Final = (
    "/usr/lib/*/libluajit-5.1.so*",
    "/usr/lib*/libluajit-5.1.so*",
    "/usr/local/lib/libluajit-5.1.so*",
)


class _Session(NamedTuple):
    """From a time on a process is this program; `base` is what its addresses are moved by, by path."""

    start: int
    base: dict[str, int]


class UftraceEngine:
    """Wraps `uftrace record -P`."""

    name: ClassVar[str] = "uftrace"

    def __init__(self, environ: Mapping[str, str], cache: Path | None = None) -> None:
        from shutil import which

        self.notes: list[str] = []
        self.missed = self.lost = 0
        self.way = ""
        self._tool = which("uftrace", path=environ.get("PATH", os.defpath)) or ""
        self._deepest = 0

    def unavailable(self, plan: Plan | None = None) -> tuple[str, str]:
        """Whether uftrace is missing."""
        if not self._tool:
            return "uftrace was not found", "install it with: apt-get install uftrace"
        return "", ""

    def record(self, plan: Plan, context: EngineContext) -> Recorded:
        """Run the command under uftrace."""
        if plan.throws:
            raise CollectorUnavailable(
                "the program throws exceptions, and uftrace crashes such programs",
                "trace it with --engine ebpf, as root; or build it with `perun collect complexity`",
            )
        data, log = context.folder / "uftrace", context.folder / "uftrace.log"
        environ = dict(context.run.environ)
        if plan.pairs:
            self.notes.append(
                "uftrace does not support USDT probes and source lines: it recorded none; "
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
            raise ended.sample.interruption  # before there was anything to record
        if not (data / "task.txt").is_file():
            raise CollectorUnavailable(
                "uftrace recorded nothing" + _last_line(log),
                "it traces dynamically linked programs of this machine; another engine: --engine ebpf",
            )
        processes: dict[int, int] = {}
        calls = self._calls(plan, data, context.folder, processes)
        sample = ended.sample._replace(status=_status(data, ended.sample.status))
        return Recorded(calls, sample, ended.errors, processes)

    def _options(self, plan: Plan) -> tuple[list[str], list[str]]:
        """What to patch, and of which functions to record the parameter that leads to the size."""
        patched, arguments = [], []
        small = []
        for probe in plan.probes:
            if probe.function.size < SMALLEST:
                small.append(probe.function.name)
                continue
            pattern = f"^{re.escape(probe.function.symbol)}$"
            library = f"@{os.path.basename(probe.path)}" if probe.path != plan.program else ""
            patched += ["-P", pattern + library]
            if probe.size is not None:
                arguments += ["-A", f"{pattern}@{_argument(probe.size)}"]
        if small:
            shown = ", ".join(small[:3]) + (f" and {len(small) - 3} more" if len(small) > 3 else "")
            self.notes.append(f"uftrace cannot trace these functions, because they are too short: {shown}")
        if sum(map(len, patched)) > _LONGEST_OPTIONS:
            libraries = {f"@{os.path.basename(probe.path)}" for probe in plan.probes}
            own = f"@{os.path.basename(plan.program)}"
            patched = ["-P", ".", *(part for one in sorted(libraries - {own}) for part in ("-P", "." + one))]
        if sum(map(len, arguments)) > _LONGEST_OPTIONS:
            self.notes.append(
                "uftrace cannot record the sizes of so many functions; select some with --func"
            )
            arguments = []
        return patched, arguments

    def _direct(self, plan: Plan) -> list[str]:
        """As the arguments of :meth:`_options`, for sizes that need no pointer to be followed."""
        return [
            part
            for probe in plan.probes
            if probe.size is not None and not _behind_pointer(probe.size)
            for part in ("-A", f"^{re.escape(probe.function.symbol)}$@{_argument(probe.size)}")
        ]

    @staticmethod
    def _needs_script(plan: Plan) -> bool:
        return any(probe.size is not None and _behind_pointer(probe.size) for probe in plan.probes)

    def _script(self, plan: Plan, context: EngineContext, environ: dict[str, str]) -> list[str]:
        """Write the script that reads sizes; the options that make uftrace run it."""
        if not self._needs_script(plan):
            return []
        found = sorted(path for pattern in _LUA_LIBRARIES for path in glob.glob(pattern))
        if not found:
            self.notes.append(
                "sizes of structures were not recorded: that needs LuaJIT besides uftrace; install it with: "
                "apt-get install libluajit-5.1-2"
            )
            return []
        # uftrace asks for the name that only a development package has.
        libraries = context.folder / "luajit"
        libraries.mkdir(exist_ok=True)
        link = libraries / "libluajit-5.1.so"
        if not link.is_symlink():
            link.symlink_to(found[0])
        environ["LD_LIBRARY_PATH"] = ":".join(
            filter(None, (str(libraries), environ.get("LD_LIBRARY_PATH", "")))
        )
        script = context.folder / "sizes.lua"
        script.write_text(script_of(plan.probes, context.folder / "sizes"), "utf-8")
        return ["-S", str(script)]

    def _calls(self, plan: Plan, data: Path, folder: Path, processes: dict[int, int]) -> Iterator[Calls]:
        sessions, tasks = _tasks(data, {probe.path for probe in plan.probes})
        processes.update(tasks)
        sizes = _sizes(folder)
        threads = sorted(int(path.stem) for path in data.glob("[0-9]*.dat"))
        epoch = min((one.start for some in sessions.values() for one in some), default=0)
        for thread in threads:
            known = sessions.get(tasks.get(thread, thread), [])
            if known:
                decoder = _Decoder(plan.probes, known, epoch, sizes.pop(thread, None))
                yield from self._thread(thread, data / f"{thread}.dat", decoder)
        if self._deepest >= MAX_DEPTH:
            self.notes.append(
                f"calls that are nested deeper than {MAX_DEPTH + 1} were not recorded, as uftrace has no "
                "room for them; --engine ebpf has"
            )

    def _thread(self, thread: int, file: Path, decoder: _Decoder) -> Iterator[Calls]:
        nesting = Nesting(thread)
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


class _ScriptSizes(NamedTuple):
    """What the script noted of a thread: when calls began, ascending, sums, and when those were read."""

    time: Ints
    sum: Ints
    after: Ints


class _Decoder:
    """Makes events of the records of one thread.

    :ivar lost: records that uftrace says are lost. :ivar deepest: greatest depth of a record.
    """

    def __init__(
        self,
        probes: Sequence[Probe],
        sessions: Sequence[_Session],
        epoch: int,
        sizes: _ScriptSizes | None,
    ) -> None:
        self.lost = 0
        self.deepest = 0
        self._sessions = sessions
        self._epoch = epoch
        self._sizes = sizes
        self._probes = probes
        self._tables = [_table(probes, session) for session in sessions]
        self._starts = np.array([session.start for session in sessions], np.int64)
        self._direct = np.array(
            [probe.size is not None and not _behind_pointer(probe.size) for probe in probes], np.bool_
        )

    def events(self, words: Piece) -> tuple[Events, int]:
        """The events of a piece, and how many words of it they were made of."""
        values = words.values
        at, used = boundaries(values, 2)
        head = values[at + 1]
        kind = (head & np.uint64(3)).astype(np.int64)
        self._note(head, kind)
        chosen = (kind == _ENTRY) | (kind == _EXIT)
        at, head, kind = at[chosen], head[chosen], kind[chosen]
        time = values[at].astype(np.int64)
        function = self._functions(time, (head >> np.uint64(16)).astype(np.int64))
        known = function >= 0
        at, head, kind, time, function = at[known], head[known], kind[known], time[known], function[known]
        size = np.full(len(at), UNKNOWN, np.int64)
        entry = kind == _ENTRY
        if self._direct.any():
            has = entry & ((head & np.uint64(4)) != 0) & self._direct[function]
            size[has] = self._direct_sizes(function[has], values[at[has] + 2].view(np.int64))
        if self._sizes is not None:
            time = self._look_up(self._sizes, size, time, function, entry)
        return Events(time - self._epoch, function, entry, size), used

    def _note(self, head: Any, kind: Any) -> None:
        lost = kind == _LOST
        if lost.any():
            self.lost += int((head[lost] >> np.uint64(16)).sum())
        if len(head):
            self.deepest = max(self.deepest, int(((head >> np.uint64(6)) & np.uint64(1023)).max()))

    def _functions(self, time: Ints, address: Ints) -> Ints:
        """Numbers of the functions of addresses, -1 of those that are not asked for."""
        session = np.maximum(np.searchsorted(self._starts, time, "right") - 1, 0)
        function = np.full(len(address), -1, np.int64)
        for number, (starts, ends, numbers) in enumerate(self._tables):
            if not len(starts):
                continue
            mine = session == number
            place = np.searchsorted(starts, address[mine], "right") - 1
            inside = (place >= 0) & (address[mine] <= ends[place])
            function[mine] = np.where(inside, numbers[place], -1)
        return function

    def _direct_sizes(self, function: Ints, value: Ints) -> Ints:
        size = np.full(len(value), UNKNOWN, np.int64)
        for number in np.unique(function).tolist():
            spec = self._probes[number].size
            assert spec is not None
            mine = function == number
            size[mine] = divided(spec, _narrowed(value[mine], spec))
        return size

    def _look_up(self, noted: _ScriptSizes, size: Ints, time: Ints, function: Ints, entry: Any) -> Ints:
        """Put in the sizes that the script noted, by the time of the call; when the calls really began."""
        begun = time.copy()
        for number in np.unique(function).tolist():
            spec = self._probes[number].size
            if spec is None or self._direct[number]:
                continue
            mine = np.flatnonzero(entry & (function == number))
            place = np.minimum(np.searchsorted(noted.time, time[mine]), len(noted.time) - 1)
            found = (noted.time[place] == time[mine]) & (noted.after[place] > 0)
            size[mine[found]] = divided(spec, noted.sum[place[found]])
            begun[mine[found]] = noted.after[place[found]]
        return begun


def _table(probes: Sequence[Probe], session: _Session) -> tuple[Ints, Ints, Ints]:
    rows = sorted(
        (session.base[probe.path] + probe.function.address, probe.function.size, number)
        for number, probe in enumerate(probes)
        if probe.path in session.base
    )
    starts, sizes, numbers = np.array(rows, np.int64).reshape(len(rows), 3).T
    return starts, starts + sizes, numbers


def _tasks(data: Path, paths: set[str]) -> tuple[dict[int, list[_Session]], dict[int, int]]:
    """Sessions of each process, and the process of each thread."""
    sessions: dict[int, list[_Session]] = {}
    tasks: dict[int, int] = {}
    for line in (data / "task.txt").read_text("utf-8", "replace").splitlines():
        kind, _, rest = line.partition(" ")
        fields = dict(field.partition("=")[::2] for field in shlex.split(rest))
        if kind == "SESS":
            pid = int(fields["pid"])
            bases = _bases(data / f"sid-{fields['sid']}.map", paths)
            sessions.setdefault(pid, []).append(_Session(_nanoseconds(fields["timestamp"]), bases))
        elif kind == "TASK":
            tasks[int(fields["tid"])] = int(fields["pid"])
        elif kind == "FORK":
            child, parent = int(fields["pid"]), int(fields["ppid"])
            tasks[child] = child
            sessions.setdefault(child, list(sessions.get(parent, [])))
    return sessions, tasks


def _bases(file: Path, paths: set[str]) -> dict[str, int]:
    """By how much the addresses of the binaries are moved, where the process has them."""
    bases: dict[str, int] = {}
    try:
        lines = file.read_text("utf-8", "replace").splitlines()
    except OSError:
        return bases
    for line in lines:
        fields = line.split(None, 5)
        path = re.sub(r" build-id:[0-9a-f]*$", "", fields[5]) if len(fields) == 6 else ""
        path = os.path.realpath(path) if path.startswith("/") else path
        if path in paths and path not in bases:
            bases[path] = int(fields[0].partition("-")[0], 16) - _first_address(path)
    return bases


def _first_address(path: str) -> int:
    from elftools.elf.elffile import ELFFile

    with open(path, "rb") as file:
        starts = [segment.address for segment in load_segments(ELFFile(file))]
    return min(starts, default=0) & ~0xFFF


def _nanoseconds(text: str) -> int:
    seconds, _, rest = text.partition(".")
    return int(seconds) * 1_000_000_000 + int(rest.ljust(9, "0")[:9])


def _status(data: Path, status: int) -> int:
    """The wait status of the command, which uftrace notes; `status`, its own, is another one."""
    found = None
    with contextlib.suppress(OSError):
        found = re.search(rb"^exit_status:(\d+)$", (data / "info").read_bytes(), re.MULTILINE)
    return int(found[1]) if found else status


def _argument(size: Size) -> str:
    if size.register >= 0:
        return f"arg{size.register + 1}/x64"
    return f"arg1/x64%stack+{size.stack // 8}"


def _behind_pointer(size: Size) -> bool:
    return any(term.offsets for term in size.terms)


def _narrowed(value: Ints, size: Size) -> Ints:
    """The value of a parameter of fewer than eight bytes: the others of the register mean nothing."""
    term = size.terms[0]
    kind = np.dtype(f"{'i' if term.signed else 'u'}{term.width}")
    return value.astype(kind).astype(np.int64) * term.factor


_NOTED: Final = np.dtype([("time", "<u8"), ("thread", "<u8"), ("sum", "<i8"), ("after", "<u8")])


def _sizes(folder: Path) -> dict[int, _ScriptSizes]:
    """What the script noted of each thread."""
    pieces = [np.fromfile(path, _NOTED) for path in sorted(folder.glob("sizes.[0-9]*"))]
    if not pieces:
        return {}
    noted = np.concatenate(pieces)
    noted = noted[noted["time"] > 0]
    noted = noted[np.lexsort((noted["time"], noted["thread"]))]
    threads, starts = np.unique(noted["thread"], return_index=True)
    ends = [*starts[1:].tolist(), len(noted)]
    return {
        int(thread): _ScriptSizes(
            *(noted[name][start:end].astype(np.int64) for name in ("time", "sum", "after"))
        )
        for thread, start, end in zip(threads, starts.tolist(), ends, strict=True)
    }


def script_of(probes: Sequence[Probe], file: Path) -> str:
    """The script for uftrace: for each call of a function with a size behind a pointer its time and the sum.

    Functions of one symbol in several files are left out where their sizes lie elsewhere, as uftrace tells
    them apart by nothing.
    """
    by_symbol: dict[str, set[tuple[Any, ...]]] = {}
    for probe in probes:
        if probe.size is not None and _behind_pointer(probe.size):
            by_symbol.setdefault(probe.function.symbol, set()).add(probe.size.terms)
    rows = []
    for symbol, found in sorted(by_symbol.items()):
        if len(found) == 1:
            terms = ", ".join(
                f"{{{term.factor}, {{{', '.join(map(str, term.offsets))}}}, "
                f"{term.width}, ffi.typeof('{'' if term.signed else 'u'}int{8 * term.width}_t *')}}"
                for term in next(iter(found))
            )
            rows.append(f"  [{_quoted(symbol)}] = {{{terms}}},")
    names = ", ".join(_quoted(symbol) for symbol in sorted(by_symbol))
    return (
        _SCRIPT.replace("@SIZES@", "\n".join(rows))
        .replace("@NAMES@", names)
        .replace("@FILE@", _quoted(str(file)))
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


_SCRIPT: Final = """
local ffi = require("ffi")
local C = ffi.C
ffi.cdef[[
int open(const char *, int, ...);
int close(int);
int ftruncate(int, int64_t);
void *mmap(void *, size_t, int, int, int, int64_t);
int munmap(void *, size_t);
int getpid(void);
struct perun_iovec { void *base; size_t length; };
long process_vm_readv(int, const struct perun_iovec *, unsigned long, const struct perun_iovec *,
                      unsigned long, unsigned long);
typedef struct { uint64_t time; uint64_t thread; int64_t sum; uint64_t after; } perun_size;
struct perun_time { int64_t seconds, nanoseconds; };
int clock_gettime(int, struct perun_time *);
]]
UFTRACE_FUNCS = { @NAMES@ }
local sizes = {
@SIZES@
}
local most = 262144
local pid, file, noted, used = 0, 0, nil, most
local known = {}
local buffer = ffi.new("uint64_t[1]")
local into, from = ffi.new("struct perun_iovec[1]"), ffi.new("struct perun_iovec[1]")
into[0].base = buffer
local now_is = ffi.new("struct perun_time[1]")
local not_read = ffi.new("int64_t", -0x7fffffffffffffffLL - 1)

-- The next piece of the file; of a file of its own in a forked process.
local function more()
  if noted ~= nil then C.munmap(noted, most * 32) end
  noted = nil
  local piece = C.open(string.format("%s.%d.%d", @FILE@, pid, file), 0x80042, ffi.cast("int", 384))
  file = file + 1
  used = 0
  if piece < 0 then return end
  if C.ftruncate(piece, most * 32) == 0 then
    local place = C.mmap(nil, most * 32, 3, 1, piece, 0)
    if ffi.cast("intptr_t", place) ~= -1 then noted = ffi.cast("perun_size *", place) end
  end
  C.close(piece)
end

local function sum(terms, start)
  local total = ffi.new("int64_t", 0)
  for _, term in ipairs(terms) do
    local offsets = term[2]
    local address = ffi.cast("uint64_t", start)
    local last = #offsets
    for step = 1, last do
      buffer[0] = 0
      from[0].base = ffi.cast("void *", address + offsets[step])
      local width = step < last and 8 or term[3]
      from[0].length = width
      into[0].length = width
      if C.process_vm_readv(pid, into, 1, from, 1, 0) ~= width then return not_read end
      address = buffer[0]
    end
    total = total + term[1] * ffi.cast("int64_t", ffi.cast(term[4], buffer)[0])
  end
  return total
end

function uftrace_begin(ctx) end
function uftrace_end() end
function uftrace_entry(ctx)
  local terms = sizes[ctx.name]
  if terms == nil or ctx.args == nil then return end
  if not known[ctx.tid] then
    known[ctx.tid] = true
    local now = C.getpid()
    if now ~= pid then
      if noted ~= nil then C.munmap(noted, most * 32) end
      pid, file, noted, used = now, 0, nil, most
    end
  end
  if used == most then more() end
  if noted == nil then return end
  local row = noted[used]
  row.thread = ctx.tid
  row.sum = sum(terms, ctx.args[1])
  row.time = ctx.timestamp
  used = used + 1
  -- The call begins when its size is read, so that its time is not that of the reading.
  C.clock_gettime(1, now_is)
  row.after = now_is[0].seconds * 1000000000 + now_is[0].nanoseconds
end
"""


def _last_line(log: Path) -> str:
    try:
        lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    except OSError:
        return ""
    return f": {lines[-1][:300]}" if lines else ""


def _shared_memory() -> set[str]:
    return set(glob.glob("/dev/shm/uftrace-*"))


def _remove_shared_memory(data: Path, before: set[str]) -> None:
    """Remove what uftrace left in shared memory where it was killed: the buffers of our sessions only."""
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
