"""The parameters of the trace collector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from perun.collect._calls.optimizations.params import OptimizationParams
from perun.plugin.params import param

ENGINES: Final = ("ebpf", "uftrace", "stap")


@dataclass(frozen=True)
class _TraceParams:
    """The functions to trace, the engine, and what happens to the command's output and temporary files."""

    engine: str = param(
        "auto",
        short="-e",
        choices=("auto", *ENGINES),
        help="The engine that records calls: ebpf (needs root), uftrace, stap (SystemTap, needs root), or "
        "auto: the best one for the program and this machine.",
    )
    strategy: str = param(
        "userspace",
        short="-s",
        choices=("userspace", "all", "u_sampled", "a_sampled", "custom"),
        help="The functions to trace: those of the program's own source (userspace), those of libraries too "
        "(all), the sampled versions of both, or only what --func, --usdt and --dynamic name (custom).",
    )
    func: tuple[str, ...] = param(
        (),
        short="-f",
        metavar="<func>",
        help="Also trace this function, as <func> or <lib>#<func>#<sampling>; may be repeated.",
    )
    usdt: tuple[str, ...] = param(
        (),
        short="-u",
        metavar="<usdt>",
        help="Also trace this USDT probe, as <lib>#<usdt>#<sampling>, or the time between two of them, as "
        "<usdt1>#<usdt2>; may be repeated.",
    )
    dynamic: tuple[str, ...] = param(
        (),
        short="-d",
        metavar="<dynamic>",
        help="Also trace this line, as <lib>#<source>:<line>#<sampling>, or the time between two of them, as "
        "<source>:<line>#<source>:<line>; may be repeated.",
    )
    size: tuple[str, ...] = param(
        (),
        metavar="<func>=<expression>",
        help="The size of the structure that a function works on, e.g. 'List_search=l->size'. By default it "
        "is a parameter or member called size, length, count ..., or the size of a container of the C++ "
        "library.",
    )
    global_sampling: int = param(
        0,
        short="-g",
        metavar="<global_sampling>",
        minimum=0,
        help="Keep only one in so many calls of each function; the <sampling> of a rule takes precedence.",
    )
    with_usdt: bool = param(
        False, long="--with-usdt/--no-usdt", help="Also trace all USDT probes of the traced files."
    )
    binary: str = param(
        "",
        short="-b",
        metavar="<binary>",
        help="The program to trace, if the command is only a script that starts it.",
    )
    follow_children: bool = param(
        False,
        help="Also trace the other programs that the command executes, by the same choice of functions: of "
        "each its own source by default, or what --func names in it. Needs the engine ebpf.",
    )
    libs: tuple[str, ...] = param(
        (),
        short="-l",
        metavar="<libs>",
        help="A library to trace, too: a path, or a name as libc.so.6; may be repeated.",
    )
    timeout: float = param(
        0.0,
        short="-t",
        metavar="<timeout>",
        minimum=0,
        help="Stop the command after so many seconds, and keep what was recorded until then as an incomplete "
        "profile; 0 means no limit.",
    )
    zip_temp: bool = param(
        False,
        short="-z",
        help="Compress the temporary files into an archive in .perun/logs before deleting them.",
    )
    keep_temp: bool = param(False, short="-k", help="Keep the temporary files.")
    verbose_trace: bool = param(
        False, short="-vt", help="Write the decoded calls as text to a temporary file; useful for debugging."
    )
    quiet: bool = param(False, short="-q", help="Print neither progress nor notes.")
    watchdog: bool = param(False, short="-w", help="Log each step of the collection to a temporary file.")
    output_handling: str = param(
        "default",
        short="-o",
        choices=("default", "capture", "suppress"),
        help="What happens to the output of the command: default: it goes to the terminal; capture: also to "
        "a temporary file; suppress: it is discarded.",
    )
    diagnostics: bool = param(
        False,
        short="-i",
        help="The same as --watchdog --verbose-trace --output-handling capture --zip-temp.",
    )
    stap_cache_off: bool = param(
        False, short="-sc", help="Have SystemTap cache no compiled scripts."
    )
    no_profile: bool = param(
        False, short="-np", help="Record only: make an empty profile, e.g. to keep the temporary files alone."
    )
    ignore_failure: bool = param(False, help="Also make a profile if the command fails.")
    callgraph: str = param(
        "",
        metavar="<file>",
        help="Write the call graph of the program to this file: as JSON if its name ends in .json, for "
        "Graphviz if in .dot or .gv.",
    )
    only_extract_cg: bool = param(
        False, short="-cg", help="Only keep the call graph of the program for this version: nothing is run."
    )
    extract_mixed_cg: bool = param(
        False, short="-mcg", help="Take the calls that were recorded earlier into the call graph, too."
    )
    max_simultaneous_threads: int = param(
        0,
        short="-mt",
        metavar="<int>",
        minimum=0,
        help="Has no effect: sampling counts the calls of all threads together.",
    )
    no_ds_update: bool = param(
        False,
        short="-nds",
        help="Do not keep what was recorded of functions for the optimizations of later runs.",
    )


@dataclass(frozen=True)
class TraceParams(OptimizationParams, _TraceParams):
    """The parameters of the trace collector, those of its own first."""
