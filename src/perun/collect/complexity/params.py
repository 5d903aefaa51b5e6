"""The parameters of the complexity collector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from perun.collect._calls.optimizations.params import OptimizationParams
from perun.collect._common import params as common
from perun.errors import UsageError
from perun.plugin.params import param

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
