"""What `compare`, `bisect` and `explain` measure: a command, and sizes of its input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from perun.core.errors import UsageError
from perun.plugin.params import param

_FEWEST: Final = 5
_SPAN: Final = 8


@dataclass(frozen=True)
class CommandOptions:
    """The command that is measured."""

    cmd: str = param("", short="-c", metavar="CMD", help="Measure this command instead of the job matrix.")
    args: str = param("", short="-a", metavar="ARGS", help="Arguments of the command.")
    workload: str = param(
        "", short="-w", metavar="WORKLOAD", help="Its input: last arguments, '< file', or '<< \"text\"'."
    )


def sizes_of(text: str) -> tuple[str, ...]:
    """The numbers of `--sizes`, ascending.

    :raises UsageError: where one is none, or there are too few.
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not all(word.isascii() and word.isdigit() and int(word) for word in words):
        raise UsageError(
            f"--sizes: {text!r} is no list of numbers above 0", "write it as e.g. 50,100,200,400,800"
        )
    found = sorted({int(word) for word in words})
    if text and (len(found) < _FEWEST or found[-1] < _SPAN * found[0]):
        raise UsageError(
            f"--sizes: {text} does not tell an order of growth",
            "give five numbers at least, the largest eight times the smallest, e.g. 50,100,200,400,800",
        )
    return tuple(map(str, found))
