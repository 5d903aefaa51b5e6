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
    source_timeout: float | None = param(
        None,
        metavar="<seconds>",
        help="Do not begin with further functions of a source after that; 0 for never. By default three "
        "times --timeout, and a twentieth of it for each function.",
    )

    def __post_init__(self) -> None:
        for name, seconds in (("timeout", self.timeout), ("source-timeout", self.source_timeout or 0.0)):
            if not 0 <= seconds < float("inf"):
                raise ValueError(f"{name}: {seconds:g} is no number of seconds; write 0 or more, as 10")
        if not (self.source or self.source_dir or self.compile_commands):
            raise ValueError("name the C sources to analyse by source, source-dir or compile-commands")

    def seconds_of_source(self, functions: int) -> float:
        """The seconds that a source of so many functions has; infinity for no limit."""
        if self.source_timeout is None:
            return self.timeout * (3 + functions / 20) or float("inf")
        return self.source_timeout or float("inf")
