"""Text file generator: files of growing numbers of lines (manual 7.4.5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from perun.plugin.api import GenerateContext, Workload
from perun.plugin.params import param

if TYPE_CHECKING:
    from random import Random

_TEXT: Final = """\
lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut labore et dolore
magna aliqua enim ad minim veniam quis nostrud exercitation ullamco laboris nisi aliquip ex ea commodo
consequat duis aute irure in reprehenderit voluptate velit esse cillum eu fugiat nulla pariatur
excepteur sint occaecat cupidatat non proident sunt culpa qui officia deserunt mollit anim id est laborum
"""
_SHUFFLED: Final = 4000
"""Words of the text that lines are cut out of."""


@dataclass(frozen=True)
class TextfileParams:
    """The range of numbers of lines, both ends included, and how long the lines are."""

    min_lines: int = param(
        10, minimum=0, help="The minimal number of lines in the file that shall be generated."
    )
    max_lines: int = param(
        100, minimum=0, help="The maximal number of lines in the file that shall be generated."
    )
    step: int = param(1, minimum=1, help="The step (or increment) of the range.")
    min_chars: int = param(5, minimum=0, help="The minimal number of characters on one line.")
    max_chars: int = param(80, minimum=0, help="The maximal number of characters on one line.")
    randomize_rows: bool = param(
        True, help="Lines have a random length from min_chars to max_chars; otherwise all have max_chars."
    )

    def __post_init__(self) -> None:
        if self.min_lines > self.max_lines:
            raise ValueError(f"min_lines ({self.min_lines}) is larger than max_lines ({self.max_lines})")
        if self.min_chars > self.max_chars:
            raise ValueError(f"min_chars ({self.min_chars}) is larger than max_chars ({self.max_chars})")


class TextfileGenerator:
    """Yields files of lorem ipsum. The file of so many lines depends on these, their lengths and the seed."""

    name: ClassVar[str] = "textfile"
    help: ClassVar[str] = "Generates the range of random files."
    Params: ClassVar[type] = TextfileParams

    def generate(self, params: TextfileParams, ctx: GenerateContext) -> Iterator[Workload]:
        """The files `lines_<number>.txt`; their size is the number of lines."""
        for lines in range(params.min_lines, params.max_lines + 1, params.step):
            path = ctx.folder / f"lines_{lines}.txt"
            _write(path, lines, params, ctx.seed)
            yield Workload(path.name, lines, path)


def _write(path: Path, lines: int, params: TextfileParams, seed: int) -> None:
    from random import Random

    random = Random(f"{seed}:{lines}")
    text, starts = _words(random, params.max_chars)
    shortest = params.min_chars if params.randomize_rows else params.max_chars
    lengths = params.max_chars - shortest + 1
    draw = random.random
    with path.open("w", encoding="ascii") as file:
        for _ in range(lines):
            start = starts[int(draw() * len(starts))]
            line = text[start : start + shortest + int(draw() * lengths)]
            file.write((line[:-1] + "." if line.endswith(" ") else line) + "\n")


def _words(random: Random, longest: int) -> tuple[str, list[int]]:
    """Random words as one text, and where lines of any length may begin in it."""
    known = _TEXT.split()
    words = [known[int(random.random() * len(known))] for _ in range(_SHUFFLED)]
    starts = [0]
    for word in words[:-1]:
        starts.append(starts[-1] + len(word) + 1)
    text = " ".join(words) + " "
    return text * (1 + -(-longest // len(text))), starts


PLUGIN = TextfileGenerator
