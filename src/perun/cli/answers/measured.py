"""What was measured, beside the version before: `208 ms ± 3 (n = 10)  +1.2 % [-0.4, +2.9] since 4baf672`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from perun.cli.table import one_line
from perun.measurement import present
from perun.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable

    from perun.cli.session import Session
    from perun.porcelain.earlier import Judged, Value

SHORT: Final = 7
"""Characters of the checksum of a version beside a value or a difference, as git shortens it."""


def value(one: Value, *, counted: bool = True) -> str:
    """The value with half the width of its interval and, if wanted, the number of measurements."""
    return one_line(present.value(one.estimate, one.unit, counted=counted))


def difference(one: Judged, *, interval: bool = True) -> str:
    """The difference from the version before, and how certain it is: `+19.8 % [+17.2, +22.5] !`."""
    text = present.difference(one.verdict, one.value.unit, interval=interval)
    return one_line(f"{text} {mark(one)}".rstrip())


def style(one: Judged) -> str:
    """The colour of a difference."""
    return present.style(one.verdict, confirmed=one.confirmed)


def line(session: Session, one: Judged) -> str:
    """What was measured and how it differs from the version before, if there is one, after what it is called:
    `real time  208 ms ± 3 (n = 10)  +1.2 % [-0.4, +2.9] since 4baf672: No Change`."""
    text = f"{one_line(one.value.metric)}  {session.paint(value(one.value), 'bold')}"
    since = told(session, one)
    return f"{text}  {since}" if since else text


def told(session: Session, one: Judged) -> str:
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


def mark(one: Judged) -> str:
    """How certain the difference is, by a key of :data:`perun.measurement.present.MARKS`; empty for noise."""
    return present.mark(one.verdict, confirmed=one.confirmed)


def note_marks(session: Session, shown: Iterable[Judged] | set[str]) -> None:
    """Say what the marks mean that stand behind differences, if there are any."""
    marks = shown if isinstance(shown, set) else set(map(mark, shown))
    texts = [f"{one} {meaning}" for one, meaning in present.MARKS.items() if one in marks]
    if texts:
        session.note(f"marks: {'; '.join(texts)}")


def value_data(one: Value) -> dict[str, Any]:
    """The value in JSON."""
    return {"metric": one.metric, **present.value_data(one.estimate, one.unit)}


def difference_data(one: Judged) -> dict[str, Any] | None:
    """The difference in JSON; null where there is no version before."""
    return None if one.verdict is None else {**present.verdict_data(one.verdict), "since": one.since}
