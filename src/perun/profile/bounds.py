"""What a profile of bounds says: for each loop and function how often it iterates at most (manual 4.1.4).

Who wants to know how a function grows asks :func:`classes`; :func:`functions_of` tells all there is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.core.errors import ProfileError

if TYPE_CHECKING:
    from perun.profile.factory import Profile


TYPE: Final = "bound"
"""The type of such a profile and of its resources."""
LOCAL: Final = "local bound"
TOTAL: Final = "total bound"
"""Subtypes: the bound of one loop, and that of all loops of a function."""
UNBOUNDED: Final = "O(∞)"
"""The class of what no bound was found of."""
REGION: Final = "bounds"
"""The region of the profile that says what could not be read; see :func:`unreadable`."""

_COUNTING: Final = ("calls", "count")
"""Parameters of the collector that change what a bound says."""
_POLYNOMIAL: Final = re.compile(r"O\((?:1|(?P<n>n(?:\^(?P<degree>\d+(?:\.\d+)?))?)?\s*(?P<log>log n)?)\)")
_EXPONENTIAL: Final = re.compile(r"O\(\d+(?:\.\d+)?\^n\)")


class Growth(NamedTuple):
    """A class of complexity; those that grow faster are greater, and O(∞) is the greatest.

    :param kind: 0 for `n^degree (log n)^logarithms`, 1 for exponential growth, 2 where there is no bound.
    """

    kind: int
    degree: float = 0.0
    logarithms: int = 0

    @classmethod
    def of(cls, text: str) -> Growth:
        """The class that a text as `O(n^2)`, `O(n log n)` or `O(∞)` names.

        :raises ValueError: where it names none.
        """
        text = text.strip()
        if text in (UNBOUNDED, "O(inf)", "inf"):
            return cls(2)
        if _EXPONENTIAL.fullmatch(text):
            return cls(1)
        match = _POLYNOMIAL.fullmatch(text)
        if match is None or text == "O()":
            raise ValueError(f"{text!r} is no class of complexity")
        return cls(0, float(match["degree"] or 1) if match["n"] else 0.0, 1 if match["log"] else 0)

    @property
    def is_bounded(self) -> bool:
        """Whether a bound was found."""
        return self.kind < 2

    def orders_above(self, other: Growth) -> float:
        """How many powers of n this grows faster; 0 where one of them is no power of n."""
        return self.degree - other.degree if self.kind == other.kind == 0 else 0.0


class Bound(NamedTuple):
    """The bound of a loop or, with `is_total`, of a function.

    :param line: 1-based line where the loop begins, or that has the name of the function.
    :param text: the bound as a formula, `inf` where there is none; :param growth_text: its class.
    :param reason: why no bound was found; empty where one was.
    """

    line: int
    is_total: bool
    text: str
    growth_text: str
    growth: Growth
    reason: str = ""


class StoredFunctionBounds(NamedTuple):
    """The bounds of one function: its total, and those of its loops in the order of the text."""

    source: str
    name: str
    total: Bound | None
    loops: tuple[Bound, ...]

    @property
    def line(self) -> int:
        """The line of its name, of its first loop where that is not known."""
        return next((one.line for one in (self.total, *self.loops) if one is not None), 0)


class UnreadPart(NamedTuple):
    """A part of a source that could not be read: `function` is empty where it is no single one."""

    source: str
    line: int
    function: str
    reason: str


def is_of_bounds(profile: Profile) -> bool:
    """Whether it is a profile of bounds."""
    return profile.type == TYPE


def classes(profile: Profile) -> dict[str, Growth]:
    """How each function grows, by its name.

    It is the class of its total bound, without the functions that it calls unless these were asked for. Of
    several functions of one name, in different files, the one that grows fastest counts.

    :raises ProfileError: where it is no profile of bounds.
    """
    found: dict[str, Growth] = {}
    for one in functions_of(profile):
        growth = max(bound.growth for bound in ((one.total,) if one.total else one.loops) if bound)
        found[one.name] = max(growth, found.get(one.name, growth))
    return found


def functions_of(profile: Profile) -> list[StoredFunctionBounds]:
    """The functions of the profile by their places, each with its bounds.

    :raises ProfileError: where it is no profile of bounds, or a resource has no class.
    """
    if not is_of_bounds(profile):
        raise ProfileError(
            f"the profile is of the type {profile.type!r} and has no bounds",
            "collect bounds with: perun collect bounds --source FILE",
        )
    by_function: dict[tuple[str, str], list[Bound]] = {}
    for _, resource in profile.all_resources():
        uid = resource.get("uid")
        if isinstance(uid, Mapping):
            key = str(uid.get("source", "")), str(uid.get("function", ""))
            by_function.setdefault(key, []).append(_bound(resource, uid))
    made = [_function(*key, found) for key, found in by_function.items()]
    return sorted(made, key=lambda one: (one.source, one.line, one.name))


def unreadable(profile: Profile) -> Iterator[UnreadPart]:
    """What of the sources could not be read, as the collector notes it in its region of the profile."""
    region = profile.get(REGION)
    noted = region.get("unreadable") if isinstance(region, Mapping) else None
    for one in noted if isinstance(noted, list) else ():
        if isinstance(one, Mapping):
            line = one.get("line")
            yield UnreadPart(
                str(one.get("source", "")),
                line if isinstance(line, int) else 0,
                str(one.get("function", "")),
                str(one.get("reason", "")),
            )


def analysis_of(profile: Profile) -> str:
    """The version of the analysis that made the profile, and what it was told to count; empty where the
    profile does not say."""
    region = profile.get(REGION)
    version = region.get("analysis") if isinstance(region, Mapping) else None
    params = profile.get("collector_info", {}).get("params")
    told = [f"{name}={params.get(name)}" for name in _COUNTING] if isinstance(params, Mapping) else []
    return " ".join((str(version), *told)) if version else ""


def _function(source: str, name: str, found: list[Bound]) -> StoredFunctionBounds:
    total = next((one for one in found if one.is_total), None)
    # Loops that begin in one line are in the order in which the collector noted them.
    loops = sorted((one for one in found if not one.is_total), key=lambda one: one.line)
    return StoredFunctionBounds(source, name, total, tuple(loops))


def _bound(resource: Mapping[str, Any], uid: Mapping[str, Any]) -> Bound:
    # Older releases have the subtype as the type.
    is_total = TOTAL in (resource.get("subtype"), resource.get("type"))
    line = uid.get("line")
    line = line if isinstance(line, int) and not isinstance(line, bool) else 0
    text = str(resource.get("class", ""))
    try:
        growth = Growth.of(text)
    except ValueError as problem:
        where = f"{uid.get('source', '')}:{uid.get('function', '')}:{line}"
        raise ProfileError(f"the resource {where} has no class: {problem}", "collect it again") from None
    return Bound(
        line + 1 if is_total else line,  # of a function the profile has the 0-based line
        is_total,
        str(resource.get("bound", "")),
        text,
        growth,
        str(resource.get("reason", "")),
    )


# The terms of a bound that grow fastest: `2 × n^2` of `3 + 2 × n × max(n, 0) + 5 × n`.
#
# A bound is a sum of products of numbers, variables, `max(...)` and `min(...)`, as profiles of bounds have
# it. What `max` and `min` do where variables are small is of no matter to the growth.

Monomial = tuple[str, ...]
"""The variables of a product, sorted, one for each power; empty for a number."""
Terms = dict[Monomial, Fraction]
"""The coefficient of each product of variables."""

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<sign>[-+×*/^(),])|"
    r"(?P<name>[A-Za-z_?](?:[^\s,()×+*/^-]|->)*(?:(?<!max)(?<!min)\([^()×+]*\))?))"
)
_MAX_TERMS: Final = 1000
_MAX_POWER: Final = 12


class NoFormula(ValueError):
    """A text is not such a formula, or one with too many terms."""


def leading(formula: str) -> Terms:
    """The terms of the highest degree of a formula; those of a number are the number itself.

    :raises NoFormula: where the text is not such a formula.
    """
    return highest(_Parser(formula).parsed())


def variables(formula: str) -> list[str]:
    """The variables in the order in which the formula names them first.

    :raises NoFormula: where the text is not such a formula.
    """
    parser = _Parser(formula)
    parser.parsed()
    return list(dict.fromkeys(parser.names))


def highest(terms: Mapping[Monomial, Fraction]) -> Terms:
    """Those of the terms that have the highest degree."""
    degree = max((len(one) for one, factor in terms.items() if factor), default=0)
    found = {one: factor for one, factor in terms.items() if len(one) == degree and factor}
    return found or {(): Fraction(0)}


def renamed(terms: Mapping[Monomial, Fraction], names: Mapping[str, str]) -> Terms:
    """The terms with other names of variables."""
    return {tuple(sorted(names.get(name, name) for name in one)): factor for one, factor in terms.items()}


def text_of(terms: Mapping[Monomial, Fraction]) -> str:
    """The terms as profiles write them: `2 × n^2 + n × m`."""
    parts = []
    for one, factor in sorted(terms.items()):
        powers = {name: one.count(name) for name in one}
        product = [name if power == 1 else f"{name}^{power}" for name, power in powers.items()]
        number = f"{float(factor):g}" if factor.denominator > 1 else str(factor)
        parts.append(" × ".join(product if factor == 1 and product else [number, *product]))
    return " + ".join(parts)


class _Parser:
    """Reads a formula by recursive descent."""

    def __init__(self, formula: str) -> None:
        self.names: list[str] = []
        self._tokens = list(_tokens(formula))
        self._at = 0

    def parsed(self) -> Terms:
        try:
            found = self._sum()
        except RecursionError:
            raise NoFormula("it is nested too deeply") from None
        if self._peek():
            raise NoFormula(f"{self._peek()!r} is in the wrong place")
        return found

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _expect(self, wanted: str) -> None:
        if self._next() != wanted:
            raise NoFormula(f"a {wanted!r} is missing")

    def _sum(self) -> Terms:
        found = self._product()
        while self._peek() in ("+", "-"):
            sign = 1 if self._next() == "+" else -1
            found = _added(found, self._product(), sign)
        return found

    def _product(self) -> Terms:
        found = self._power()
        while self._peek() in ("×", "*", "/"):
            if self._next() == "/":
                divisor = self._power()
                if list(divisor) != [()] or not divisor[()]:
                    raise NoFormula("it divides by a variable")
                found = {one: factor / divisor[()] for one, factor in found.items()}
            else:
                found = _multiplied(found, self._power())
        return found

    def _power(self) -> Terms:
        base = self._factor()
        if self._peek() != "^":
            return base
        self._next()
        exponent = self._next()
        if not exponent.isdigit() or int(exponent) > _MAX_POWER:
            raise NoFormula("a power is no small number")
        found: Terms = {(): Fraction(1)}
        for _ in range(int(exponent)):
            found = _multiplied(found, base)
        return found

    def _factor(self) -> Terms:
        token = self._next()
        if token == "-":
            return _multiplied({(): Fraction(-1)}, self._factor())
        if token == "(":
            found = self._sum()
            self._expect(")")
            return found
        if token[:1].isdigit():
            return {(): Fraction(token)}
        if token in ("max", "min") and self._peek() == "(":
            return self._extreme(token)
        if not token or not (token[0].isalpha() or token[0] in "_?"):
            raise NoFormula(f"{token!r} is in the wrong place")
        self.names.append(token)
        return {(token,): Fraction(1)}

    def _extreme(self, which: str) -> Terms:
        self._expect("(")
        found = [self._sum()]
        while self._peek() == ",":
            self._next()
            found.append(self._sum())
        self._expect(")")
        tops = [highest(one) for one in found]
        degrees = [len(next(iter(one))) for one in tops]
        if which == "min":
            return found[degrees.index(min(degrees))]
        return _largest(top for top, degree in zip(tops, degrees, strict=True) if degree == max(degrees))


def _tokens(formula: str) -> Iterable[str]:
    position, end = 0, len(formula.rstrip())
    while position < end:
        match = _TOKEN.match(formula, position)
        if match is None:
            raise NoFormula(f"{formula[position : position + 20]!r} cannot be read")
        yield match[match.lastgroup or 0]
        position = match.end()


def _added(left: Terms, right: Terms, sign: int) -> Terms:
    found = dict(left)
    for one, factor in right.items():
        found[one] = found.get(one, Fraction(0)) + sign * factor
    return found


def _multiplied(left: Terms, right: Terms) -> Terms:
    if len(left) * len(right) > _MAX_TERMS:
        raise NoFormula("it has too many terms")
    found: Terms = {}
    for one, factor in left.items():
        for other, times in right.items():
            key = tuple(sorted(one + other))
            found[key] = found.get(key, Fraction(0)) + factor * times
    return found


def _largest(several: Iterable[Terms]) -> Terms:
    """The largest coefficient of each product: no less than any of them."""
    found: Terms = {}
    for terms in several:
        for one, factor in terms.items():
            found[one] = max(factor, found.get(one, factor))
    return found


def difference(old: Mapping[Monomial, Fraction], new: Mapping[Monomial, Fraction]) -> int | None:
    """1 where the new terms are larger, -1 where they are smaller, 0 where they are the same; None where some
    are larger and others smaller."""
    changes = [new.get(one, Fraction(0)) - old.get(one, Fraction(0)) for one in old.keys() | new.keys()]
    grows, shrinks = any(one > 0 for one in changes), any(one < 0 for one in changes)
    return None if grows and shrinks else int(grows) - int(shrinks)


def ratio(old: Mapping[Monomial, Fraction], new: Mapping[Monomial, Fraction]) -> float | None:
    """The largest, of terms that shrink the smallest, ratio of a new coefficient to the old one.

    None where no product is in both with positive coefficients that differ.
    """
    found = [float(new[one] / old[one]) for one in old.keys() & new.keys() if old[one] > 0 and new[one] > 0]
    found = [one for one in found if one != 1]
    return max(found, key=lambda one: max(one, 1 / one)) if found else None


def by_order(old: Sequence[str], new: Sequence[str]) -> dict[str, str]:
    """Names that the target has for variables of the baseline: those that only one side has, paired in their
    order; empty where their numbers differ."""
    gone = [name for name in old if name not in new]
    came = [name for name in new if name not in old]
    return dict(zip(gone, came, strict=True)) if len(gone) == len(came) else {}
