"""Parts of the JSON answers that several verbs share (docs/json.md)."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO

from perun.cli.table import one_line
from perun.core.errors import ConfigError
from perun.core.wording import plural
from perun.measurement import present
from perun.profile.changes import DegradationInfo

if TYPE_CHECKING:
    from collections.abc import Iterable

    from perun.cli.session import Session
    from perun.history.baseline import BaselineComparison, SeriesValue


TYPE_COLOURS = {"bound": "magenta", "memory": "green", "mixed": "cyan", "time": "blue"}
"""The colours of the types of profiles, in every list."""
CHUNK: Final = 200
"""Items of a list that become JSON at once: so many fit into the caches of a processor."""


def write_json(out: TextIO, answer: Mapping[str, Any]) -> None:
    """Write an object of JSON, the items of its lists one a line: readable, and quick for thousands.

    A list may be an iterator, whose items are made as they are written.
    """
    out.write("{")
    separator = "\n"
    for key, value in answer.items():
        out.write(f"{separator}{json.dumps(key)}: ")
        if isinstance(value, (list, Iterator)):
            _write_list(out, iter(value))
        else:
            out.write(json.dumps(value))
        separator = ",\n"
    out.write("\n}\n")


def _write_list(out: TextIO, items: Iterator[Any]) -> None:
    before = "[\n "
    while chunk := list(itertools.islice(items, CHUNK)):
        # One call for many items takes much less than one for each. Quotes within texts are escaped, so that
        # what is replaced stands between objects only.
        text = json.dumps(chunk)[1:-1].replace('}, {"', '},\n {"')
        out.write(before + text)
        before = ",\n "
    out.write("[]" if before[0] == "[" else "\n]")


def change_data(change: DegradationInfo) -> dict[str, Any]:
    """A change as JSON data; interval, p_value, sizes, detectable and rule are null if the check does not
    know them, and so are the values, percent and factor of what is no number.

    A rate, confidence or bound that is no finite number is null, too.
    """
    from perun.cli.answers.changes import amounts_of, percent_interval, ratio_of

    ratio, bounds = ratio_of(change), percent_interval(change)
    before, after = (
        None if one is None else {"value": float(one.value), "unit": one.unit} for one in amounts_of(change)
    )
    return {
        "result": change.result.name,
        "location": change.location,
        "type": change.type,
        "from": change.from_baseline,
        "to": change.to_target,
        "rate": finite(change.rate_degradation),
        "relative_rate": finite(change.rate_degradation_relative),
        "confidence_type": change.confidence_type,
        "confidence": finite(change.confidence_rate),
        "interval": None if change.interval is None else [finite(bound) for bound in change.interval],
        "p_value": finite(change.p_value),
        "sizes": None if change.sizes is None else list(change.sizes),
        "detectable": finite(change.detectable),
        "rule": change.rule or None,
        **_verdict_data(change),
        "from_value": before,
        "to_value": after,
        "factor": finite(ratio),
        "percent": None if ratio is None else finite(100 * (ratio - 1)),
        "percent_interval": None if bounds is None else [finite(bound) for bound in bounds],
    }


def _verdict_data(change: DegradationInfo) -> dict[str, Any]:
    """What lists and histories say of a difference as well, by the same names; without a ratio, or where the
    method is another one, that is null."""
    from perun.measurement.verdict import UNDECIDED

    known = change.type == "ratio" and change.p_value is not None
    low, high = (change.interval if known else None) or (None, None)
    return {
        "ratio": finite(change.rate_degradation) if known else None,
        "ratio_low": finite(low),
        "ratio_high": finite(high),
        "verdict": change.result.name,
        "reason": change.rule or None,
        "decides": change.result not in UNDECIDED,
        "limit": change.limit,
        "confirmed": change.confirmed,
    }


def finite(number: float | None) -> float | None:
    """The number; None if it is infinite or none at all, which JSON has no words for."""
    return number if number is not None and isfinite(number) else None


# What was measured, beside the version before: `208 ms ± 3 (n = 10)  +1.2 % [-0.4, +2.9] since 4baf672`.

SHORT: Final = 7
"""Characters of the checksum of a version beside a value or a difference, as git shortens it."""


def value(one: SeriesValue, *, counted: bool = True) -> str:
    """The value with half the width of its interval and, if wanted, the number of measurements."""
    return one_line(present.value(one.estimate, one.unit, counted=counted))


def difference(one: BaselineComparison, *, interval: bool = True) -> str:
    """The difference from the version before, and how certain it is: `+19.8 % [+17.2, +22.5] !`."""
    text = present.difference(one.verdict, one.value.unit, interval=interval)
    return one_line(f"{text} {mark(one)}".rstrip())


def style(one: BaselineComparison) -> str:
    """The colour of a difference."""
    return present.style(one.verdict, confirmed=one.confirmed)


def line(session: Session, one: BaselineComparison) -> str:
    """What was measured and how it differs from the version before, if there is one, after what it is called:
    `real time  208 ms ± 3 (n = 10)  +1.2 % [-0.4, +2.9] since 4baf672: No Change`."""
    text = f"{one_line(one.value.metric)}  {session.paint(value(one.value), 'bold')}"
    since = difference_text(session, one)
    return f"{text}  {since}" if since else text


def difference_text(session: Session, one: BaselineComparison) -> str:
    """The difference with its word; empty where there is no version before."""
    if one.verdict is None:
        return ""
    text = one_line(present.difference(one.verdict, one.value.unit))
    painted = session.paint(text, style(one))
    return f"{painted} since {one.since[:SHORT]}: {present.word(one.verdict, confirmed=one.confirmed)}"


def note_unread(session: Session, count: int) -> None:
    """Say of how many profiles a list lacks the values because they were not read, if there are any."""
    if count:
        session.note(
            f"note: the values of {plural(count, 'profile')} are not known yet; "
            "read them all with: perun fsck --repair"
        )


def mark(one: BaselineComparison) -> str:
    """How certain the difference is, by a key of :data:`perun.measurement.present.MARKS`; empty for noise."""
    return present.mark(one.verdict, confirmed=one.confirmed)


def note_marks(session: Session, shown: Iterable[BaselineComparison] | set[str]) -> None:
    """Say what the marks mean that stand behind differences, if there are any."""
    marks = shown if isinstance(shown, set) else set(map(mark, shown))
    texts = [f"{one} {meaning}" for one, meaning in present.MARKS.items() if one in marks]
    if texts:
        session.note(f"marks: {'; '.join(texts)}")


def value_data(one: SeriesValue) -> dict[str, Any]:
    """The value in JSON."""
    return {"metric": one.metric, **present.value_data(one.estimate, one.unit)}


def difference_data(one: BaselineComparison) -> dict[str, Any] | None:
    """The difference in JSON; null where there is no version before."""
    return (
        None
        if one.verdict is None
        else {
            **present.verdict_data(one.verdict),
            "confirmed": one.confirmed,
            "since": one.since,
            "shares": one.verdict.difference.shares or None,
        }
    )


def judged_data(one: BaselineComparison | None) -> dict[str, Any]:
    """The value and the difference in JSON; both null where nothing is known."""
    return {
        "measured": None if one is None else value_data(one.value),
        "difference": None if one is None else difference_data(one),
    }


# The formats of `status` and `log --short` (manual chapter 12): `%tag%` or `%tag:width%`, else raw text.

_TAG = re.compile(r"%([a-z_]+)(?::(\d+))?%")


class Placeholder(NamedTuple):
    """A placeholder; `width` is the number of characters it is cut to, None if it is not cut."""

    name: str
    width: int | None


def parse_format(text: str, known: Sequence[str], key: str) -> list[str | Placeholder]:
    """The raw pieces and tags of a format string, in order.

    :param key: the configuration key the text comes from, for the message.
    :raises ConfigError: if a tag is unknown.
    """
    pieces: list[str | Placeholder] = []
    position = 0
    for match in _TAG.finditer(text):
        if match.start() > position:
            pieces.append(text[position : match.start()])
        name, width = match.groups()
        if name not in known:
            raise ConfigError(
                f"{key}: there is no tag %{name}%", "tags are: " + ", ".join(f"%{tag}%" for tag in known)
            )
        # Never cut below the title's own length, so that the header stays readable (manual 12.2).
        pieces.append(Placeholder(name, int(width) if width else None))
        position = match.end()
    if position < len(text):
        pieces.append(text[position:])
    return pieces
