"""Exporter of callgrind's format, for callgrind_annotate and KCachegrind."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import ClassVar, Final

from perun.exporter._common import Note, StackParams, nanoseconds, program_of, stack_values
from perun.profile.calls import Frame
from perun.profile.factory import Profile

_EVENTS: Final = {"instr": ("Ir", "Instructions"), "B": ("Bytes", "Bytes"), "": ("Count", "Count")}


class CallgrindExporter:
    """Writes what functions cost themselves and what their calls cost, of call stacks."""

    name: ClassVar[str] = "callgrind"
    help: ClassVar[str] = "callgrind.out, for KCachegrind and callgrind_annotate."
    suffix: ClassVar[str] = ".callgrind"
    Params: ClassVar[type] = StackParams

    def write(self, profile: Profile, params: StackParams, note: Note) -> Iterator[bytes]:
        """The file: how often functions were called is not known of stacks, so each call is one."""
        found = stack_values(profile, params.of or "amount", note)
        ((name, unit),) = found.units.items()
        scale = nanoseconds(unit)
        event, title = ("ns", "Nanoseconds") if scale else _EVENTS.get(unit, ("Amount", name))
        own: dict[Frame, dict[int, int]] = {}
        calls: dict[tuple[Frame, int, Frame], int] = {}
        total = 0
        for stack, (amount,) in found.amounts.items():
            cost = round(amount * (scale or 1))
            total += cost
            leaf = stack[-1]
            lines = own.setdefault(leaf._replace(line=0), {})
            lines[leaf.line] = lines.get(leaf.line, 0) + cost
            counted = set()
            for caller, callee in pairwise(stack):
                key = (caller._replace(line=0), caller.line, callee._replace(line=0))
                if key not in counted:  # of a recursion once
                    counted.add(key)
                    calls[key] = calls.get(key, 0) + cost
        yield (
            f"# callgrind format\nversion: 1\ncreator: perun\ncmd: {_one_line(program_of(profile))}\n"
            f"positions: line\nevent: {event} : {_one_line(title)}\nevents: {event}\nsummary: {total}\n"
        ).encode()
        arcs: dict[Frame, list[tuple[int, Frame, int]]] = {}
        for (function, line, callee), cost in calls.items():
            arcs.setdefault(function, []).append((line, callee, cost))
        for function in dict.fromkeys([*own, *arcs]):
            rows = [f"\nfl={_one_line(function.source) or '???'}", f"fn={_one_line(function.name)}"]
            rows += [f"{line} {cost}" for line, cost in sorted(own.get(function, {}).items())]
            for line, callee, cost in arcs.get(function, ()):
                rows += [f"cfi={_one_line(callee.source) or '???'}", f"cfn={_one_line(callee.name)}"]
                rows += ["calls=1 0", f"{line} {cost}"]
            yield ("\n".join(rows) + "\n").encode()
        yield f"\ntotals: {total}\n".encode()


def _one_line(text: str) -> str:
    """A name that does not look like one that is written by its number: `(1)`."""
    text = " ".join(text.split())
    return f"_{text}" if text.startswith("(") and text[1:2].isdigit() else text


PLUGIN = CallgrindExporter
