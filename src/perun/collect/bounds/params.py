"""What `perun collect bounds` is asked for: which sources, how they are preprocessed, what is counted."""

from __future__ import annotations

from dataclasses import dataclass

from perun.plugin.params import param


@dataclass(frozen=True)
class BoundsParams:
    """The sources, and how they are read and analysed; files are named from the folder of the project."""

    source: tuple[str, ...] = param(
        (), short="-s", alias="--src", metavar="<path>", help="Analyse this C source. May be repeated."
    )
    source_dir: tuple[str, ...] = param(
        (),
        short="-d",
        metavar="<dir>",
        help="Analyse the C sources (*.c) in this folder and those below it; hidden ones are left out. "
        "May be repeated.",
    )
    include: tuple[str, ...] = param(
        (), short="-I", metavar="<dir>", help="Look for headers in this folder, too. May be repeated."
    )
    define: tuple[str, ...] = param(
        (), short="-D", metavar="<name[=value]>", help="Define this macro. May be repeated."
    )
    compile_commands: str = param(
        "",
        metavar="<file>",
        help="Take folders of headers and macros of each source from this compile_commands.json; without "
        "--source and --source-dir all C sources that it lists are analysed.",
    )
    function: tuple[str, ...] = param(
        (), short="-f", metavar="<name>", help="Analyse this function only. May be repeated."
    )
    calls: bool = param(
        False,
        help="Count what a function calls in its total bound, too, as far as that is defined in the same "
        "source.",
    )
    count: str = param(
        "iterations",
        choices=("iterations", "backedges"),
        help="What the bound of a loop counts: iterations, which is one more than its back edges where it is "
        "not in another loop, or plain back edges.",
    )

    timeout: float = param(
        10.0,
        metavar="<seconds>",
        help="Give up a function, or reading a source, that takes longer; 0 for never. The others go on.",
    )

    def __post_init__(self) -> None:
        if not 0 <= self.timeout < float("inf"):
            raise ValueError(f"timeout: {self.timeout:g} is no number of seconds")
        if not (self.source or self.source_dir or self.compile_commands):
            raise ValueError("name the C sources to analyse by source, source-dir or compile-commands")
