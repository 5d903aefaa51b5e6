"""What a degradation check reports (manual 8.1 and 8.4): the change and its classification."""

from __future__ import annotations

from enum import Enum


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
