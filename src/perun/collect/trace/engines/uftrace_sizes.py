"""How uftrace records the sizes of structures: as a parameter, or by a script that follows pointers.

uftrace records parameters, but does not follow pointers. Where a size lies behind one, it runs a script at
each call by LuaJIT (`uftrace_sizes.lua`).
"""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from perun.collect._calls.sizes import Size
from perun.collect._common.columns import Ints
from perun.collect.trace.plan import Probe

_LIBRARIES: Final = (
    "/usr/lib/*/libluajit-5.1.so*",
    "/usr/lib*/libluajit-5.1.so*",
    "/usr/local/lib/libluajit-5.1.so*",
)
_RECORD: Final = np.dtype([("time", "<u8"), ("thread", "<u8"), ("sum", "<i8"), ("after", "<u8")])
"""`perun_record` of the script."""


class ScriptSizes(NamedTuple):
    """What the script recorded of a thread, in the order of time.

    :param time: when the calls began. :param sum: the sums of the terms of their sizes.
    :param after: when these had been read; 0 where the script was stopped before.
    """

    time: Ints
    sum: Ints
    after: Ints


def follows_pointers(size: Size) -> bool:
    """Whether the size lies behind a pointer, so that only the script can read it."""
    return any(term.offsets for term in size.terms)


def argument_of(size: Size) -> str:
    """The parameter with which a size begins, as uftrace specifies it (`--argument`)."""
    if size.register >= 0:
        return f"arg{size.register + 1}/x64"
    return f"arg1/x64%stack+{size.stack // 8}"


def find_luajit() -> str:
    """Path of the library of LuaJIT; empty where it is not installed."""
    return min((path for pattern in _LIBRARIES for path in glob.glob(pattern)), default="")


def read_sizes(folder: Path) -> dict[int, ScriptSizes]:
    """What the script wrote to the files `sizes.*` in a folder, by the id of the thread."""
    parts = [np.fromfile(path, _RECORD) for path in sorted(folder.glob("sizes.[0-9]*"))]
    if not parts:
        return {}
    records = np.concatenate(parts)
    records = records[records["time"] > 0]  # the end of a file is unused
    records = records[np.lexsort((records["time"], records["thread"]))]
    threads, starts = np.unique(records["thread"], return_index=True)
    ends = [*starts[1:].tolist(), len(records)]
    return {
        int(thread): ScriptSizes(
            *(records[name][start:end].astype(np.int64) for name in ("time", "sum", "after"))
        )
        for thread, start, end in zip(threads, starts.tolist(), ends, strict=True)
    }


def script_of(probes: Sequence[Probe], file: Path) -> str:
    """The script for uftrace, for the probes with a size behind a pointer; it writes to files `<file>.*`.

    Functions of several files that have one symbol, but different sizes, are left out, because the script
    knows a function by its symbol only.
    """
    by_symbol: dict[str, set[tuple[Any, ...]]] = {}
    for probe in probes:
        if probe.size is not None and follows_pointers(probe.size):
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
    script = Path(__file__).with_suffix(".lua").read_text("utf-8")
    return (
        script.replace("@SIZES@", "\n".join(rows))
        .replace("@NAMES@", names)
        .replace("@FILE@", _quoted(str(file)))
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
