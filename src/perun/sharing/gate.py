"""What a gate of continuous integration found, on its way from the job that measures to the one that tells.

The job that measures runs the code of a pull request, so its file is a stranger's: it is read strictly, and
nothing of it is obeyed. It holds words of Perun, numbers and short texts, and no command to be pasted.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from perun.core.errors import ProfileError

LARGEST: Final = 256 << 10
"""Bytes that a file has at most."""
MOST: Final = 50
"""Changes, and reasons, that are kept."""
_LENGTH: Final = 300

Text = Annotated[str, Meta(max_length=_LENGTH)]
Checksum = Annotated[str, Meta(pattern="^(|[0-9a-f]{40}|[0-9a-f]{64})$", max_length=64)]
Count = Annotated[int, Meta(ge=0, le=1_000_000_000)]
Ratio = Annotated[float, Meta(ge=0, le=1e12)]
Verdict = Literal[
    "Unknown", "NotInBaseline", "TotalDegradation", "SevereDegradation", "Degradation", "MaybeDegradation",
    "NoChange", "MaybeOptimization", "Optimization", "SevereOptimization", "TotalOptimization", "NotInTarget",
]  # fmt: skip


class GateChange(Struct, frozen=True, forbid_unknown_fields=True):
    """What changed of one series: `command` and `series` name it, `before` and `after` are its values with
    units; the bounds of the ratio are None where there are none."""

    command: Text
    series: Text
    verdict: Verdict
    before: Text
    after: Text
    ratio: Ratio | None
    low: Ratio | None
    high: Ratio | None
    n: Count
    confirmed: bool
    acknowledged: bool


class GateReason(Struct, frozen=True, forbid_unknown_fields=True):
    """Why: a sentence of `perun explain`, and the place in the repository; its `path` is empty where it is
    not known."""

    sentence: Text
    path: Text
    line: Count


class Gate(Struct, frozen=True, forbid_unknown_fields=True):
    """The answer of a gate, `perun.ci/1`.

    `code` is the exit code, `level` what it fails on. `base` and `head` are the versions that were measured,
    empty where it came to none. `slower` and `severe`, `faster` and `undecided` count commands. `changes` are
    the most important series, the worst first. `error` and `hint` say why it could not be measured, `unseen`
    why nothing explains it.
    """

    schema: Literal["perun.ci/1"]
    code: Annotated[int, Meta(ge=0, le=255)]
    level: Literal["severe", "degradation", "maybe", "inconclusive"]
    base: Checksum
    head: Checksum
    suite: bool
    budget: Annotated[float, Meta(ge=0, le=1e9)] | None
    compared: Count
    slower: Count
    severe: Count
    faster: Count
    undecided: Count
    changes: Annotated[tuple[GateChange, ...], Meta(max_length=MOST)]
    why: Annotated[tuple[GateReason, ...], Meta(max_length=MOST)]
    unseen: Text
    error: Text
    hint: Text


def short(text: str) -> str:
    """The text as long as the form allows; characters that are none are replaced."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= _LENGTH else f"{text[: _LENGTH - 1]}…"


def failed(code: int, level: str, error: str, hint: str, *, base: str = "", head: str = "") -> Gate:
    """That nothing could be measured, and why."""
    fields = {
        "schema": "perun.ci/1", "code": code, "level": level, "base": base, "head": head, "suite": False,
        "budget": None, **dict.fromkeys(("compared", "slower", "severe", "faster", "undecided"), 0),
        "changes": (), "why": (), "unseen": "", "error": short(error), "hint": short(hint),
    }  # fmt: skip
    return msgspec.convert(fields, Gate)


def written(gate: Gate) -> bytes:
    """The gate as a file."""
    return msgspec.json.format(msgspec.json.encode(gate), indent=1) + b"\n"


def read(data: bytes) -> Gate:
    """What a file says.

    :raises ProfileError: where it is none of `perun ci run`, in whatever way.
    """
    try:
        if len(data) > LARGEST:
            raise ValueError(f"it has more than {LARGEST} bytes")
        return msgspec.json.decode(data, type=Gate)
    except (ValueError, RecursionError) as problem:  # those of msgspec are such
        raise ProfileError(
            f"the report of the gate is refused: {problem}",
            "let the job that measures run again, with the same version of Perun",
        ) from None
