"""Call stacks that many groups of resources share, each stored once in a profile by columns.

In JSON every group spells its `trace`, frame by frame. In the directory of a profile by columns the `trace`
is the number of a stack, which is a list of numbers of frames; both lists stand beside the groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from perun.profile.format.encoding import COMPACT

REGION: Final = "stacks"
"""The key of both lists in a directory."""


class InvalidStacks(Exception):
    """Numbers of frames or stacks that there are not; the text says which."""


class Shared(NamedTuple):
    """Constants of groups with numbers in place of stacks.

    :param stacks: `frames`: JSON values, mostly mappings, all different; `stacks`: lists of their numbers.
    """

    constants: dict[str, Any]
    stacks: dict[str, list[Any]]


def frames_in(constants: Any) -> int:
    """The number of frames in the stacks of groups, each counted as often as JSON spells it.

    :param constants: the region `resource_type_map`, of any form.
    """
    return sum(map(len, _traces(constants))) if isinstance(constants, Mapping) else 0


def _traces(constants: Mapping[str, Any]) -> list[list[Any]]:
    return [
        own["trace"]
        for own in constants.values()
        if isinstance(own, Mapping) and isinstance(own.get("trace"), list)
    ]


def share(constants: Any) -> Shared | None:
    """The groups with each different stack once; None where they have none, or a `trace` that is no list.

    :param constants: the region `resource_type_map`, of any form.
    """
    if not isinstance(constants, Mapping):
        return None
    with_trace = sum(isinstance(own, Mapping) and "trace" in own for own in constants.values())
    if not with_trace or with_trace > len(_traces(constants)):
        return None
    numbers = _Numbers()
    try:
        found = {
            key: {**own, "trace": numbers.of(own["trace"])} if "trace" in own else own
            for key, own in constants.items()
        }
    except (TypeError, ValueError, RecursionError):
        return None  # no JSON: who writes the profile says so
    return Shared(found, {"frames": numbers.frames, "stacks": [list(stack) for stack in numbers.stacks]})


class _Numbers:
    """Numbers of frames and of stacks in the order in which they come first."""

    def __init__(self) -> None:
        self.frames: list[Any] = []
        self.stacks: dict[tuple[int, ...], int] = {}
        self._of_text: dict[str, int] = {}
        self._of_object: dict[int, int] = {}

    def of(self, trace: list[Any]) -> int:
        stack = tuple(map(self._frame, trace))
        return self.stacks.setdefault(stack, len(self.stacks))

    def _frame(self, frame: Any) -> int:
        number = self._of_object.get(id(frame))
        if number is None:
            # By its JSON: 1, 1.0 and true are equal, but not the same.
            number = self._of_text.setdefault(COMPACT.text(frame, ""), len(self.frames))
            if number == len(self.frames):
                self.frames.append(frame)
            self._of_object[id(frame)] = number  # it lives as long as the profile
        return number


def restore(constants: dict[str, Any], stacks: Any, most: int) -> None:
    """Put the stacks in place of their numbers; groups get lists of their own, of common frames.

    :param stacks: as :func:`share` makes it, but from a file. :param most: frames of all groups at most.
    :raises InvalidStacks: where it is not, or there are more.
    """
    frames, lists = (stacks.get("frames"), stacks.get("stacks")) if isinstance(stacks, dict) else (0, 0)
    if not isinstance(frames, list) or not isinstance(lists, list):
        raise InvalidStacks("its directory has no lists of stacks")
    for own in constants.values():
        if not isinstance(own, dict) or "trace" not in own:
            continue
        stack = _item(lists, own["trace"])
        if not isinstance(stack, list):
            raise InvalidStacks("its directory has a stack that is no list")
        most -= len(stack)
        if most < 0:
            raise InvalidStacks("its stacks have more frames than JSON of the largest size holds")
        own["trace"] = [_item(frames, number) for number in stack]


def _item(items: list[Any], number: Any) -> Any:
    if type(number) is not int or not 0 <= number < len(items):
        raise InvalidStacks("its directory refers to a stack or a frame that it does not have")
    return items[number]
