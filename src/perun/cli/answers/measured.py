"""What a profile measured as text: `208 ms ± 3 (n = 10)`, and its difference: `+1.2 % [-0.4, +2.9]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from perun.cli.table import one_line
from perun.profile import amounts
from perun.profile.amounts import readable, readable_spread
from perun.profile.measured import Difference, Measured
from perun.profile.measured import difference as difference_of
from perun.wording import plural

if TYPE_CHECKING:
    from perun.cli.session import Session
    from perun.porcelain.earlier import Earlier

SHORT: Final = 7
"""Characters of the checksum of a version beside a value or a difference, as git shortens it."""


def value(measured: Measured | None, *, counted: bool = True) -> str:
    """The value with its spread and, if wanted, the number of measurements; empty without a value."""
    if measured is None:
        return ""
    if measured.spread is None:
        return readable(measured.value, measured.unit)
    text = readable_spread(measured.value, measured.spread, measured.unit)
    return f"{text} (n = {measured.samples})" if counted else text


def percent(difference: Difference | None, *, interval: bool = True) -> str:
    """The difference in percent, with the interval where there is one; empty without a difference."""
    if difference is None:
        return ""
    if difference.low is None or difference.high is None or not interval:
        return amounts.percent(difference.share)
    return amounts.percent(difference.share, (difference.low, difference.high))


def style(difference: Difference | None, measured: Measured | None) -> str:
    """The colour of a difference: red of what is worse, green of what is better; none within its interval."""
    if difference is None or measured is None or difference.low is None or difference.high is None:
        return ""
    if difference.low <= 0 <= difference.high:
        return ""
    return "green" if (difference.share > 0) == measured.larger_is_better else "red"


def line(session: Session, measured: Measured, earlier: Earlier | None) -> str:
    """What was measured and how it differs from an earlier version, if there is one, after the name of what
    it is: `real time  208 ms ± 3 (n = 10)  +1.2 % [-0.4, +2.9] since 4baf672`."""
    text = f"{one_line(measured.metric)}  {session.paint(one_line(value(measured)), 'bold')}"
    difference = None if earlier is None else difference_of(earlier.measured, measured)
    if earlier is None or difference is None:
        return text
    since = f"since {earlier.minor_version[:SHORT]}"
    return f"{text}  {session.paint(percent(difference), style(difference, measured))} {since}"


def note_unread(session: Session, count: int) -> None:
    """Say of how many profiles a list lacks the values because they were not read, if there are any."""
    if count:
        session.note(
            f"note: the values of {plural(count, 'profile')} are not known yet; "
            "read them all with: perun fsck --repair"
        )


def as_data(measured: Measured | None) -> dict[str, Any] | None:
    """The value in JSON: numbers and their unit."""
    if measured is None:
        return None
    return {
        "metric": measured.metric,
        "value": measured.value,
        "unit": measured.unit,
        "standard_deviation": measured.spread,
        "count": measured.samples,
    }


def difference_data(difference: Difference | None) -> dict[str, Any] | None:
    """The difference in JSON; percents."""
    if difference is None:
        return None
    low, high = difference.low, difference.high
    interval = None if low is None or high is None else [100 * low, 100 * high]
    return {"percent": 100 * difference.share, "interval": interval}
