"""Importer of callgrind's files, of counts of instructions."""

from __future__ import annotations

from collections.abc import Iterator
from os.path import basename, normpath
from pathlib import Path, PurePosixPath
from typing import ClassVar, Final

from perun.native.callgrind import InclusiveCosts, read
from perun.native.costs import CostTree, FunctionFrame, InstructionCosts, LineCosts, grow, resources
from perun.plugin.interchange import ImportContext, Imported, ImportFile
from perun.plugin.params import NoParams
from perun.profile.factory import Profile

_SYSTEM: Final = ("/usr/", "/lib", "/opt/", "/nix/")
"""Where programs lie that are none of the project."""
_MOST_PARTS: Final = 64


class CallgrindImporter:
    """Reads exact counts of functions; call stacks are divided as `perun collect instructions` does it."""

    name: ClassVar[str] = "callgrind"
    help: ClassVar[str] = "callgrind.out, with counts of instructions (Ir)."
    Params: ClassVar[type] = NoParams

    def recognizes(self, head: bytes, path: str) -> bool:
        """The first line, or the lines of a header."""
        return head.startswith(b"# callgrind format") or (
            b"\nevents:" in b"\n" + head and any(one in head for one in (b"\nfn=", b"\nob=", b"\nfl="))
        )

    def read(self, file: ImportFile, params: NoParams, ctx: ImportContext) -> Iterator[Imported]:
        """One profile."""
        with file.open() as opened:
            graph = read(opened, file.wrong)
        frames = []
        for one in graph.functions:
            source = basename(one.file) or basename(one.object)
            frames.append(FunctionFrame(one.name or "?", source))
        tree, inclusive = CostTree(), InclusiveCosts()
        grow(tree, graph, frames.__getitem__)
        inclusive.add(graph, frames.__getitem__)
        if not tree.total:
            raise file.wrong("it counts no instructions")
        if graph.lost and graph.expected is not None:
            ctx.note(f"{file.name} was cut off: {graph.lost} instructions are missing")
        sums = inclusive.sums(tree.inclusive(), tree.exclusive())
        program = graph.command.strip()
        header = {
            "type": "mixed", "units": {"instructions": "instr"}, "cmd": program or self.name, "args": "",
            "workload": "",
        }  # fmt: skip
        about = {"name": self.name, "params": {}}
        profile = Profile({"header": header, "collector_info": about, "postprocessors": []})
        costs = InstructionCosts(tree, sums, inclusive.calls)
        word = basename(program.partition(" ")[0]) or self.name
        profile.update_resources(resources(costs, word), columns=("calls",))
        if ctx.project is not None:
            lines = LineCosts()
            lines.add(graph, frames, _Sources(ctx.project).path)
            if found := lines.region(tree.total):
                profile["lines"] = found
        yield Imported(profile)


class _Sources:
    """The sources of a project, as a recording names them that may be of another machine."""

    def __init__(self, project: Path) -> None:
        self._project = project
        self._known: dict[str, str] = {}

    def path(self, file: str, binary: str) -> str:
        """The path of a source relative to the project; empty where it has no such file."""
        if binary.startswith(_SYSTEM):
            return ""
        if file not in self._known:
            parts = PurePosixPath(normpath(file)).parts if file and "\0" not in file else ()
            ends = ("/".join(parts[at:]) for at in range(len(parts)) if parts[at] not in ("/", ".."))
            self._known[file] = next(filter(self._has, ends), "") if len(parts) < _MOST_PARTS else ""
        return self._known[file]

    def _has(self, path: str) -> bool:
        try:
            return (self._project / path).is_file()
        except OSError:
            return False


PLUGIN = CallgrindImporter
