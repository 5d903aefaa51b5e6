"""How the cost of an input grows with its essential part: "quadratic in the number of spaces".

Of all patterns that the input suggests (:mod:`perun.fuzz.patterns`) the one is taken whose repetition raises
the cost most, in inputs of equal size. It is repeated 1, 2, 3, 4, 6, 8 ... times up to a size, or until the
program hangs or fails, and the executed lines and the time are modelled by
:func:`perun.models.growth.order.order_of`. Where the cost does not grow, or no order can be told, that is the
answer.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any, Final, NamedTuple

from perun.fuzz.executing import OutOfTime, RunInput, RunOutcome, until
from perun.fuzz.patterns import InputPattern, candidates
from perun.models.growth.forms import POWER
from perun.models.growth.order import EXPONENTIAL, MIN_RISE, order_of
from perun.models.record import NoModel

LARGEST: Final = 1 << 20
"""Bytes of an input in which patterns are looked for."""
MIN_SIZE: Final = 1024
"""Bytes up to which inputs may grow at least, whatever the limit of the campaign."""
ALPHA: Final = 0.05
"""Probability with which the bounds of an exponent may miss."""
_QUICK: Final = 0.02
"""Seconds below which a run is too short to model its time."""
_REPEATS: Final = 3
"""Runs of each length; the median of their times counts."""
_LONG: Final = 0.5
"""Seconds from which on a run is not repeated."""
_GROWS: Final = 4
"""How many times as long the next length may take: it is up to twice as long, with a quadratic cost."""
_ENOUGH: Final = 8
"""Lengths that are measured at least, if the program allows."""
_SIMPLER: Final = 0.9
"""Share of the highest rise with which a pattern is as good as that one."""
_TRIED: Final = 3
"""Patterns that are tried where no order of growth explains the costs of those before."""
_DOUBLINGS: Final = 3
"""Doublings of the size after which patterns that rise much less than another are left out."""
_MUCH_LESS: Final = 1 / 32
"""Share of the highest rise below which a pattern is left out."""
_AS_STEEP: Final = 0.25
"""How much less the exponent of the last doubling may be than the highest one: of a pattern that costs much
but is linear and one that costs less but is quadratic, the quadratic one matters."""
_ENDED: Final = 4
"""Patterns that hang or fail at the same size, of which the cheapest one by itself is taken."""
_LOOKS: Final = (0.1, 20.0, 2.0)
"""Seconds that a run gets at least while patterns are compared, times those of the input, and at most."""
_STEEP: Final = 100.0
"""Times the cost of the seeds, or of one repetition, which no order below 1 explains: something that matters
less was repeated."""
_NAMES: Final = {
    "log n": "logarithmic",
    "n": "linear",
    "n log n": "linearithmic (n log n)",
    "n^2": "quadratic",
    "n^3": "cubic",
}


class LengthPoint(NamedTuple):
    """One length: repetitions, bytes of the input, its count, median time in seconds."""

    times: int
    size: int
    cost: int
    seconds: float


class CostOrder(NamedTuple):
    """The order of growth of one kind of cost.

    :param of: `executed lines` or `time`. :param name: `quadratic`, `exponential` ..., empty where none can
        be told; then :param reason: says why.
    :param form: `n^2`; :param b: the exponent, or the base, that fits best, with :param low: and :param high:
        its bounds (None: unbounded). :param r_square: what share the curve explains.
    :param coefficients: c0, c1, c2 of c0 + c1 f(n) + c2 n.
    :param curve: its values at the lengths that were measured.
    """

    of: str
    name: str = ""
    form: str = ""
    b: float | None = None
    low: float | None = None
    high: float | None = None
    r_square: float | None = None
    coefficients: tuple[float, ...] = ()
    curve: tuple[float, ...] = ()
    reason: str = ""

    @property
    def certainty(self) -> str:
        """The interval and R^2, as people read them."""
        if not self.name:
            return ""
        what = "base" if self.form == "b^n" else "exponent"
        low = f"{self.low:.2f}" if self.low is not None else "any less"
        high = f"{self.high:.2f}" if self.high is not None else "any more"
        bounds = "" if low == high else f" ({low} to {high})"
        return f"{what} {self.b:.2f}{bounds}, R² {self.r_square:.4f}"

    def as_json(self) -> dict[str, Any]:
        """As JSON objects."""
        lists = {"coefficients": [*self.coefficients], "curve": [*self.curve]}
        return {**self._asdict(), **lists, "certainty": self.certainty}


class CostGrowth(NamedTuple):
    """How the cost of an input grows.

    :param pattern: what is repeated. :param points: what was measured, by length.
    :param orders: of the executed lines, and of the time where it is long enough to be modelled.
    :param ends: how the program ended where it did not end by itself: `hang` or `fault`, else empty;
        :param ends_at: from how many repetitions on. :param runs: of the program in all.
    """

    pattern: InputPattern
    points: tuple[LengthPoint, ...]
    orders: tuple[CostOrder, ...]
    ends: str
    ends_at: int
    runs: int

    @property
    def text(self) -> str:
        """One sentence: `quadratic in the number of spaces: exponent 2.00 (1.99 to 2.01), R² 0.9999`."""
        what = self.pattern.text
        number = f"the depth of {what}" if what.startswith("nested") else f"the number of {what}"
        order = self.orders[0]
        if order.name:
            said = f"{order.name} in {number}: {order.certainty}"
        else:
            said = f"no growth is known with {number}: {order.reason}"
        if self.ends == "fault":
            said += f"; the program fails from {self.ends_at:,} on"
        elif self.ends:
            said += f"; the program hangs from {self.ends_at:,} on"
        return said

    def as_json(self) -> dict[str, Any]:
        """As JSON objects, with the parts of the pattern as text of Latin-1: a character for each byte."""
        pattern = {
            key: part.decode("latin-1") if isinstance(part, bytes) else part
            for key, part in self.pattern._asdict().items()
        }
        return {
            "text": self.text,
            "pattern": {**pattern, "name": self.pattern.text},
            "orders": [one.as_json() for one in self.orders],
            "points": [one._asdict() for one in self.points],
            "ends": self.ends,
            "ends_at": self.ends_at,
            "runs": self.runs,
        }


def find(
    data: bytes,
    run: RunInput,
    *,
    max_size: int,
    hang_timeout: float,
    ratio: float = 1.0,
    unit: str = "executed lines",
    seconds: float = 60.0,
    report: Callable[[str], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> CostGrowth | NoModel:
    """Find what of the input makes the program slow, and how the cost grows with it.

    :param data: the input, minimised if possible. :param max_size: bytes of the inputs at most, though never
        less than :data:`MIN_SIZE`. :param hang_timeout: seconds after which a run counts as a hang.
    :param ratio: its cost to that of the seeds. :param unit: what the count
        of a run counts. :param seconds: in all, about. :param report: told what is done.
    """
    if len(data) > LARGEST:
        return NoModel(f"its {len(data):,} bytes are too many to look for what is repeated in them")
    work = _Work(run, max(max_size, MIN_SIZE, 2 * len(data)), hang_timeout, clock() + seconds, clock)
    if report:
        report("looking for what the cost grows with")
    try:
        whole = work.ran(data)
        least, longer, most = _LOOKS
        timeout = min(hang_timeout, most, max(least, longer * whole.seconds))
        patterns = _steepest(work, candidates(data), len(data), timeout)
    except OutOfTime:
        return NoModel("there was no time to look for what the cost grows with")
    found: CostGrowth | None = None
    for pattern in patterns:
        if report:
            report(f"measuring {pattern.text}")
        points, ends, ends_at = _measured(work, pattern)
        orders = [_order(unit, points, [point.cost for point in points], ratio)]
        if max((point.seconds for point in points), default=0.0) >= _QUICK:
            orders.append(_order("time", points, [point.seconds for point in points]))
        if found is None or orders[0].name:
            found = CostGrowth(pattern, tuple(points), tuple(orders), ends, ends_at, work.runs)
        if orders[0].name or work.left <= 0:
            break
    return found or NoModel("nothing of the input raises the cost when it is repeated")


class _Work:
    """Runs the program, and knows when the time is over."""

    def __init__(
        self, run: RunInput, size: int, hang_timeout: float, end: float, clock: Callable[[], float]
    ) -> None:
        self.size, self.hang_timeout = size, hang_timeout
        self.runs = 0
        self._run = until(end, run, clock)
        self._end, self._clock = end, clock

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self._end - self._clock()

    def ran(self, data: bytes, timeout: float | None = None) -> RunOutcome:
        """:raises OutOfTime: if the time was over before it had ended."""
        self.runs += 1
        return self._run(data, self.hang_timeout if timeout is None else timeout)


def _steepest(
    work: _Work, patterns: Sequence[InputPattern], length: int, timeout: float
) -> list[InputPattern]:
    """The patterns whose cost rises steepest, and of such ones most, when inputs become twice as long, at the
    largest size; that with the least around its part first, as it leaves most room for repetitions.

    All have the same size, which doubles until one pattern alone is left, the program hangs or fails with
    one, or the limits are reached. There is none where the cost rises with none.
    """
    end = work.left / 2
    size, doublings = max(32, min(length, work.size // 64)), 0
    costs: dict[InputPattern, int] = {}
    rises: dict[InputPattern, int] = {}
    exponents: dict[InputPattern, float] = {}
    remaining = list(patterns)
    while remaining and work.left > end:
        ended: list[InputPattern] = []
        for pattern in remaining:
            if not pattern.largest(size):
                continue  # one repetition alone is longer yet
            ran = work.ran(pattern.input(pattern.largest(size)), timeout)
            if ran.outcome != "ok":
                ended.append(pattern)
                if len(ended) == _ENDED or work.left <= end:
                    break
                continue
            before = costs.get(pattern)
            if before is not None:
                rises[pattern] = ran.total - before if ran.total > MIN_RISE * before else 0
                longer = pattern.largest(size) / pattern.largest(size // 2)
                exponents[pattern] = math.log(max(ran.total, 1) / max(before, 1)) / math.log(longer)
            costs[pattern] = ran.total
        if ended:
            # The others hang with what is around their part, whatever that is.
            return sorted(ended, key=lambda pattern: _cost_of_one(work, pattern, timeout))[:_TRIED]
        remaining = [pattern for pattern in remaining if rises.get(pattern, 1)]
        highest = max(rises.values(), default=0)
        if doublings >= _DOUBLINGS:
            least = _MUCH_LESS * highest
            remaining = [pattern for pattern in remaining if rises.get(pattern, highest) >= least]
            if len(remaining) == 1:
                break
        if 2 * size > work.size:
            break
        size, doublings = 2 * size, doublings + 1
    rising = [pattern for pattern in remaining if rises.get(pattern)]
    steepest = max((exponents[pattern] for pattern in rising), default=0.0)
    found = [pattern for pattern in rising if exponents[pattern] >= steepest - _AS_STEEP]
    highest = max((rises[pattern] for pattern in found), default=0)
    best = [pattern for pattern in found if rises[pattern] >= _SIMPLER * highest]
    return sorted(best, key=lambda pattern: len(pattern.input(1)))[:_TRIED]


def _cost_of_one(work: _Work, pattern: InputPattern, timeout: float) -> float:
    """The cost of one repetition."""
    ran = work.ran(pattern.input(1), timeout)
    return ran.total if ran.outcome == "ok" else math.inf


def _measured(work: _Work, pattern: InputPattern) -> tuple[list[LengthPoint], str, int]:
    """The costs by length; how the program ended where it did not by itself, and from which length on."""
    found: dict[int, LengthPoint] = {}
    ends, ends_at = "", 0
    with contextlib.suppress(OutOfTime):
        for times in _lengths(pattern.largest(work.size)):
            expected = _expected(found, times)
            if expected > work.hang_timeout:
                _fill(work, pattern, found)  # first what is known to end
            if min(expected, work.hang_timeout) > work.left / 2:
                break  # there would be no time left
            point, outcome = _point(work, pattern, times)
            if point is None:
                ends, ends_at = outcome, times
                break
            found[times] = point
            if _REPEATS * _GROWS * point.seconds > work.left:
                break  # the next one would take longer than there is time
        if ends:
            _fill(work, pattern, found)
            for smaller in _first_bad(work, pattern, found, ends_at, ends):
                ends_at = smaller
    return [found[times] for times in sorted(found)], ends, ends_at


def _expected(found: dict[int, LengthPoint], times: int) -> float:
    """The seconds that so many repetitions take, if each multiplies the cost as the last ones did."""
    if len(found) < 2:
        return 0.0
    before, last = (found[one] for one in sorted(found)[-2:])
    factor = math.log(max(last.cost, 1) / max(before.cost, 1)) / (last.times - before.times)
    return last.seconds * math.exp(min(factor * (times - last.times), 700.0))


def _lengths(largest: int) -> Iterator[int]:
    """1, 2, 3, 4, 6, 8, 12 ... and at last the largest."""
    times = 1
    while times < largest:
        yield times
        if times > 1 and times * 3 // 2 < largest:
            yield times * 3 // 2
        times *= 2
    yield max(1, largest)


def _first_bad(
    work: _Work, pattern: InputPattern, found: dict[int, LengthPoint], bad: int, ends: str
) -> Iterator[int]:
    """Smaller and smaller lengths that fail, at last the smallest; of a hang, which takes long to see, only
    about."""
    good = max(found, default=0)
    tries = 20 if ends == "fault" else 2
    while bad - good > 1 and tries:
        middle, tries = (good + bad) // 2, tries - 1
        point, _ = _point(work, pattern, middle)
        if point is None:
            bad = middle
            yield bad
        else:
            good, found[middle] = middle, point


def _fill(work: _Work, pattern: InputPattern, found: dict[int, LengthPoint]) -> None:
    """Measure lengths in between, where the program soon hangs."""
    last = max(found, default=0)
    between = [times for times in range(1, last) if times not in found]
    wanted = max(0, 2 * _ENOUGH - len(found))
    for times in between[:: -max(1, -(-len(between) // wanted))] if wanted else []:
        point, _ = _point(work, pattern, times)
        if point is not None:
            found[times] = point


def _point(work: _Work, pattern: InputPattern, times: int) -> tuple[LengthPoint | None, str]:
    data = pattern.input(times)
    seconds: list[float] = []
    while True:
        ran = work.ran(data)
        if ran.outcome != "ok":
            return None, ran.outcome
        seconds.append(ran.seconds)
        if len(seconds) == _REPEATS or ran.seconds > _LONG:
            return LengthPoint(times, len(data), ran.total, median(seconds)), "ok"


def _order(of: str, points: Sequence[LengthPoint], costs: Sequence[float], ratio: float = 1.0) -> CostOrder:
    """:param ratio: times the cost of the seeds that is to be explained."""
    found = order_of([point.times for point in points], costs, ALPHA)
    if isinstance(found, NoModel):
        return CostOrder(of, reason=found.reason)
    times = max(ratio, max(costs) / min(costs))
    if times >= _STEEP and (found.form == "log n" or (found.form == POWER and found.b < 1)):
        return CostOrder(of, reason="the cost grows by less than its number, which cannot be all")
    name = _NAMES.get(found.form) or (
        "exponential" if found.form == EXPONENTIAL else f"polynomial of degree {found.b:.2f}"
    )
    low, high = (bound if math.isfinite(bound) else None for bound in (found.low, found.high))
    curve = tuple(float(value) for value in found.at([point.times for point in points]))
    coefficients = found.c0, found.c1, found.c2
    return CostOrder(of, name, found.form, found.b, low, high, found.r_square, coefficients, curve)
