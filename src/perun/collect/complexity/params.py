"""The parameters of the complexity collector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from perun.collect._common import params as common
from perun.errors import UsageError
from perun.plugin.params import param

STORAGE: Final = 20_000


@dataclass(frozen=True)
class ComplexityParams:
    """What is compiled, and which calls are recorded."""

    target_dir: str = param(
        "",
        short="-t",
        metavar="<dir>",
        help="Directory for the compiled binary and temporary build data; by default none of it is kept.",
    )
    files: tuple[str, ...] = param(
        (),
        short="-f",
        metavar="<path>",
        help="A C/C++ source file (or header) that the program is built of, which then runs in place of the "
        "command, with its arguments and workload.",
    )
    rules: tuple[str, ...] = param(
        (), short="-r", metavar="<func>", help="Marks the function for profiling; without, all are profiled."
    )
    sampling: tuple[tuple[str, int], ...] = param(
        (),
        short="-s",
        metavar="<func> <int>",
        pair=("func", "sample"),
        help="Sets the sampling of the given function to every <int> call.",
    )
    internal_data_filename: str = param(
        "",
        short="-if",
        metavar="<path>",
        help="Folder in the target directory that the recorded data are kept in.",
    )
    internal_storage_size: int = param(
        STORAGE,
        short="-is",
        metavar="<int>",
        minimum=1,
        help="Number of calls of a thread that are buffered before they are written.",
    )
    internal_direct_output: bool = param(
        False,
        short="-id",
        help="Has no effect: every call is saved at once, however the program ends.",
    )
    build: str = param(
        "",
        metavar="<command>",
        help="Run this command to build the program; what compiles in it is made to compile for profiling.",
    )
    compile_flags: str = param("-O2", metavar="<flags>", help="Options of the compiler for --files.")
    binary: str = param(
        "",
        short="-b",
        metavar="<path>",
        help="The program that the command runs, where the command is only a script that does.",
    )
    size: tuple[str, ...] = param(
        (),
        metavar="<func>=<expression>",
        help="What is the size of the structure that a function works on, e.g. List_search=list->size.",
    )
    ignore_failure: bool = common.ignore_failure()
    timeout: float = common.timeout(kept=True)

    def __post_init__(self) -> None:
        for function, every in self.sampling:
            if not 1 <= every < 1 << 31:
                raise UsageError(
                    f"the sampling of {function} must be a whole number of at least 1, not {every}"
                )
        for size in self.size:
            if not all(part.strip() for part in size.partition("=")):
                raise UsageError(
                    f"the size {size!r} lacks its function or its expression", "write <func>=<expression>"
                )
        if self.files and self.build:
            raise UsageError("--files and --build exclude each other", "remove one of the two")
