"""Parameters of a plugin, declared once as a frozen dataclass.

The options on the command line and the keys in the YAML of a job matrix are both made from the same
fields, so they cannot drift apart::

    @dataclass(frozen=True)
    class Params:
        warmup: int = param(3, short="-w", minimum=0, help="Executions before the measured ones.")

A field is an `int`, `float`, `str`, `bool`, `tuple[str, ...]` (an option that may be repeated) or
`tuple[tuple[str, str], ...]` (a repeated option with two values).
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_type_hints

from perun.errors import ConfigError

P = TypeVar("P")
_KEY = "perun.param"
PAIRS = tuple[tuple[str, str], ...]
STRINGS = tuple[str, ...]


@dataclass(frozen=True)
class ParamInfo:
    """What the declaration of one parameter says beyond its name, type and default."""

    help: str
    short: str = ""
    long: str = ""
    metavar: str = ""
    choices: tuple[str, ...] = ()
    minimum: float | None = None


@dataclass(frozen=True)
class ParamSpec:
    """One parameter as the command line and the configuration see it."""

    name: str
    type: Any
    default: Any
    info: ParamInfo

    @property
    def flags(self) -> list[str]:
        """The option's spellings, the short one first: `['-w', '--warmup']`."""
        long = self.info.long or "--" + self.name.replace("_", "-")
        return [self.info.short, long] if self.info.short else [long]


def param(
    default: Any,
    *,
    help: str,
    short: str = "",
    long: str = "",
    metavar: str = "",
    choices: Sequence[str] = (),
    minimum: float | None = None,
) -> Any:
    """Declare a parameter: a dataclass field with its default, flag and help.

    :param short: short option, e.g. `-w`; :param long: long option where it is not `--<name>`.
    :param choices: the values allowed; :param minimum: smallest number allowed.
    """
    info = ParamInfo(help, short, long, metavar, tuple(choices), minimum)
    return dataclasses.field(default=default, metadata={_KEY: info})


def specs(params: type) -> Iterator[ParamSpec]:
    """The parameters that the dataclass `params` declares, in order."""
    hints = get_type_hints(params)
    for field in dataclasses.fields(params):
        info = field.metadata.get(_KEY) or ParamInfo("")
        yield ParamSpec(field.name, hints[field.name], field.default, info)


def from_mapping(params: type[P], values: Mapping[str, Any], where: str) -> P:
    """The dataclass `params` with `values` from a configuration or a YAML file.

    A dash and an underscore in a key are the same.

    :param where: what the values belong to, for the message, e.g. `collector 'time' in local.yml`.
    :raises ConfigError: names the unknown key and its nearest right one, or the value of a wrong type.
    """
    known = {spec.name: spec for spec in specs(params)}
    given: dict[str, Any] = {}
    for key, value in values.items():
        name = str(key).replace("-", "_")
        if name not in known:
            raise ConfigError(f"{where}: unknown parameter {key!r}", nearest(str(key), known))
        given[name] = _convert(known[name], value, where)
    return params(**given)


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint that names what is spelled nearest to `name`, or everything known where nothing is near."""
    candidates = sorted(known)
    close = difflib.get_close_matches(name.replace("-", "_"), candidates, n=3, cutoff=0.6)
    if close:
        return "did you mean " + " or ".join(repr(one) for one in close) + "?"
    return "known are: " + ", ".join(candidates) if candidates else "none are known"


def _convert(spec: ParamSpec, value: Any, where: str) -> Any:
    def wrong(expected: str) -> ConfigError:
        return ConfigError(f"{where}: {spec.name} must be {expected}, not {value!r}")

    if spec.type is bool:
        if not isinstance(value, bool):
            raise wrong("true or false")
        return value
    if spec.type in (int, float):
        return _number(spec, value, wrong)
    if spec.type == STRINGS:
        items = value if isinstance(value, (list, tuple)) else [value]
        return tuple(_choice(spec, str(item), wrong) for item in items)
    if spec.type == PAIRS:
        if not isinstance(value, (list, tuple)) or any(
            not isinstance(item, (list, tuple)) or len(item) != 2 for item in value
        ):
            raise wrong("a list of pairs")
        return tuple((str(key), str(item)) for key, item in value)
    if isinstance(value, (dict, list)):
        raise wrong("text")
    return _choice(spec, str(value), wrong)


def _number(spec: ParamSpec, value: Any, wrong: Any) -> Any:
    kind = "a whole number" if spec.type is int else "a number"
    if isinstance(value, bool):
        raise wrong(kind)
    try:
        number = spec.type(value)
    except (TypeError, ValueError):
        raise wrong(kind) from None
    if spec.type is int and isinstance(value, float) and not value.is_integer():
        raise wrong(kind)
    if spec.info.minimum is not None and number < spec.info.minimum:
        raise wrong(f"at least {spec.info.minimum:g}")
    return number


def _choice(spec: ParamSpec, value: str, wrong: Any) -> str:
    if spec.info.choices and value not in spec.info.choices:
        raise wrong("one of " + ", ".join(spec.info.choices))
    return value
