"""What a degradation check reports (manual 8.1 and 8.4): the change and its classification."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.profile.amounts import readable
from perun.profile.uid import flatten

if TYPE_CHECKING:
    from perun.profile.factory import Profile


class PerformanceChange(Enum):
    """Classification of a performance change, ordered from the worst to the best (manual 8.1)."""

    Unknown = -6
    NotInBaseline = -5
    TotalDegradation = -4
    SevereDegradation = -3
    Degradation = -2
    MaybeDegradation = -1
    NoChange = 0
    MaybeOptimization = 1
    Optimization = 2
    SevereOptimization = 3
    TotalOptimization = 4
    NotInTarget = 5


class DegradationInfo:
    """One reported change of performance (manual 8.4, `perun.utils.structs.DegradationInfo`).

    :param res: classification of the change.
    :param loc: where it happened, e.g. the name of a function.
    :param fb: value or model in the baseline, with its unit.
    :param tt: value or model in the target, with its unit.
    :param t: type of the change, e.g. `ratio` or `order`.
    :param rd: rate of the change; what it is a rate of depends on the check.
    :param ct: type of the confidence, e.g. `r_square`; `no` where the check has none.
    :param cr: value of the confidence.
    :param pi: changes on parts of the interval, as (change, rate, start, end); their rate is
        (target - baseline) / baseline, whatever that of the whole is; NaN where it is not known.
    :param rdr: relative rate of the change.
    :param interval: bounds of the rate, where the check knows how sure it is of it.
    :param p_value: probability of a difference this large if there is none, where the check tests that.
    :param sizes: number of measurements of the baseline and of the target, where the check counts them.
    :param detectable: the smallest growth, as a ratio above 1, that these measurements would have shown.
    :param rule: a sentence that says which rule decided on the change; empty if the check has one rule.
    :param values: what `fb` and `tt` are texts of, as numbers of `unit`, where both are numbers of one unit.
    :param confirmed: of what stands for the profile, whether a definite change was seen more than once
        (:func:`perun.measurement.verdict.confirmed`).
    :param limit: of what is unknown, the change that it does not exceed, as a share.
    """

    def __init__(
        self,
        res: PerformanceChange,
        loc: str,
        fb: str,
        tt: str,
        t: str = "-",
        rd: float = 0,
        ct: str = "no",
        cr: float = 0,
        pi: list[tuple[PerformanceChange, float, float, float]] | None = None,
        rdr: float = 0.0,
        interval: tuple[float, float] | None = None,
        p_value: float | None = None,
        sizes: tuple[int, int] | None = None,
        detectable: float | None = None,
        rule: str = "",
        values: tuple[float, float] | None = None,
        unit: str = "",
        confirmed: bool = True,
        limit: float | None = None,
    ) -> None:
        self.result = res
        self.location = loc
        self.from_baseline = fb
        self.to_target = tt
        self.type = t
        self.rate_degradation = float(rd)
        self.confidence_type = ct
        self.confidence_rate = float(cr)
        self.partial_intervals = list(pi or [])
        self.rate_degradation_relative = float(rdr)
        self.interval = interval
        self.p_value = p_value
        self.sizes = sizes
        self.detectable = detectable
        self.rule = rule
        self.values = values
        self.unit = unit
        self.confirmed = confirmed
        self.limit = limit

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DegradationInfo):
            return NotImplemented
        return vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # it can be changed

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"DegradationInfo({values})"

    def to_storage_record(self) -> str:
        """The change as the leading fields of one line of a `.changes` file, blank-separated.

        :returns: location, change, type, from, to, rate, confidence type, confidence, relative rate; a
            blank, line break or percent sign inside a field is written as `%` and two hexadecimal digits.
        """
        fields = (
            self.location,
            str(self.result),
            self.type,
            self.from_baseline,
            self.to_target,
            str(self.rate_degradation),
            self.confidence_type,
            str(self.confidence_rate),
            str(self.rate_degradation_relative),
        )
        return " ".join(escape_field(value) for value in fields)


def escape_field(text: str) -> str:
    """`text` without blanks, reversibly, so that it is one field of a blank-separated line."""
    escaped = "".join(f"%{ord(char):02X}" if char in " %\t\n\r\v\f" else char for char in text)
    return escaped or "%00"


def unescape_field(text: str) -> str:
    """The inverse of :func:`escape_field`; text that old releases wrote unescaped passes through."""
    if "%" not in text:
        return text
    if text == "%00":
        return ""
    pieces = text.split("%")
    result = [pieces[0]]
    for piece in pieces[1:]:
        code = piece[:2]
        if len(code) == 2 and code in _ESCAPES:
            result.append(_ESCAPES[code] + piece[2:])
        else:
            result.append("%" + piece)
    return "".join(result)


_ESCAPES = {f"{ord(char):02X}": char for char in " %\t\n\r\v\f"}


# Functions that a profile of instructions leaves out because they are too small.
#
# Which these are depends on all the others: where a program executes twice as much, functions that execute
# what they did fall below the limit. Their absence says nothing of the program.

REPEATABLE: Final = 1e-4
"""Share of a whole up to which counts of one program may differ from run to run: the number of a process has
more digits, a timestamp is written differently."""
_TYPE: Final = "instructions"
_TOTAL: Final = "total"
_IN_ONE_ONLY: Final = (PerformanceChange.NotInBaseline, PerformanceChange.NotInTarget)


def without_negligible(
    changes: Iterable[DegradationInfo], baseline: Profile, target: Profile
) -> Iterator[DegradationInfo]:
    """The changes, but for functions that only one of the profiles lists, with at most
    :data:`REPEATABLE` of the instructions of either."""
    amounts: list[Counter[str]] = []
    for change in changes:
        if change.result in _IN_ONE_ONLY:
            amounts = amounts or [_amounts(baseline), _amounts(target)]
            own = max(one[change.location] for one in amounts)
            if 0 < own <= REPEATABLE * max(one[_TOTAL] for one in amounts):
                continue
        yield change


def _amounts(profile: Profile) -> Counter[str]:
    """The instructions by uid, and the largest of these as :data:`_TOTAL`; empty for any other profile."""
    found: Counter[str] = Counter()
    for group in profile.groups():
        if group.constants.get("type") == _TYPE:
            column = group.columns.get("amount") or [group.constants.get("amount", 0)]
            numbers = [one for one in column if isinstance(one, (int, float)) and math.isfinite(one)]
            found[str(flatten(group.constants.get("uid", "")))] += sum(numbers)  # type: ignore[assignment]
    found[_TOTAL] = max(found.values(), default=0)
    return found


# Times that recorders of calls cannot tell from what recording itself costs.
#
# The collectors of calls subtract that cost, and note in the region `trace` of the profile, by function, how
# far it may be wrong. A difference of two profiles within that says nothing of the program: it is unknown.

_PART: Final = re.compile(r"^(?P<uid>.*) \[(?P<part>[^\[\]]*)\]$", re.DOTALL)
_RATIO: Final = "ratio"
_EXCLUSIVE: Final = "time"
"""The type of changes of exclusive times."""
_SURE: Final = (
    PerformanceChange.Unknown,
    PerformanceChange.NoChange,
    PerformanceChange.NotInBaseline,
    PerformanceChange.NotInTarget,
)
"""Results that say nothing of a change, or do not rest on times."""


class TimeUncertainty(NamedTuple):
    """A time of a function and by how much it may be wrong; nanoseconds, in sum or by call.

    :param below: whether the time is not above its uncertainty.
    """

    time: float
    uncertainty: float
    below: bool


def of_function(profile: Mapping[str, Any], uid: str, which: str, *, total: bool) -> TimeUncertainty | None:
    """The time of a function in a profile; None where the profile does not tell how far it may be wrong.

    :param which: `inclusive` or `exclusive`. :param total: the sum of all calls; else the mean of a call.
    """
    region = profile.get("trace")
    overhead = region.get("overhead") if isinstance(region, Mapping) else None
    functions = overhead.get("functions") if isinstance(overhead, Mapping) else None
    row = functions.get(uid) if isinstance(functions, Mapping) else None
    if not isinstance(row, Mapping):
        return None
    try:
        times, calls = row[which], 1 if total else row["calls"]
        return TimeUncertainty(times["time"] / calls, times["uncertainty"] / calls, bool(times["below"]))
    except (KeyError, TypeError, ZeroDivisionError):
        return None


def without_doubtful(
    changes: Iterable[DegradationInfo], baseline: Profile, target: Profile
) -> Iterator[DegradationInfo]:
    """The changes; those that may be due to the cost of recording become Unknown, and their rule says so."""
    for change in changes:
        reason = "" if change.result in _SURE else _doubt(change, baseline, target)
        if reason:
            change.result = PerformanceChange.Unknown
            change.rule = reason
        yield change


def _doubt(change: DegradationInfo, baseline: Profile, target: Profile) -> str:
    """Why a change says nothing; empty where it does."""
    is_exclusive = change.type == _EXCLUSIVE
    found = _PART.match(change.location)
    total = is_exclusive or (found is not None and found["part"] == _TOTAL)
    # An exclusive time may be told with the file of the function before it.
    names = (change.location, found["uid"] if found else "", change.location.partition(":")[2])
    for uid in filter(None, names):
        which = "exclusive" if is_exclusive else "inclusive"
        old, new = (of_function(one, uid, which, total=total) for one in (baseline, target))
        if old is not None and new is not None:
            difference = abs(new.time - old.time)
            if change.type == _RATIO:  # robust ratios are small where a few interruptions make means differ
                difference = min(difference, abs(change.rate_degradation - 1) * min(old.time, new.time))
            return _reason(old, new, difference, "altogether" if total else "in a call")
    return ""


def _reason(old: TimeUncertainty, new: TimeUncertainty, difference: float, where: str) -> str:
    if old.below and new.below:
        return "both times are within the uncertainty of what recording the calls costs"
    doubt = old.uncertainty + new.uncertainty
    if difference > doubt:
        return ""
    return (
        "the times differ by no more than what recording the calls costs may be wrong by: "
        f"{readable(doubt, 'ns')} {where}"
    )
