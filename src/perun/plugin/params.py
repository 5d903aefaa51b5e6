"""Parameters of a plugin, declared once as a frozen dataclass.

The options on the command line and the keys in the YAML of a job matrix are both made from the same
fields, so they cannot drift apart::

    @dataclass(frozen=True)
    class Params:
        warmup: int = param(3, short="-w", minimum=0, help="Executions before the measured ones.")

Where the plugin works in several modes with options of their own, one field says which (`commands`): each
mode is a sub-command, and other fields name the modes that have them.

A field is an `int`, `float`, `str`, `bool`, `tuple[str, ...]` (an option that may be repeated),
`tuple[tuple[str, str], ...]` or `tuple[tuple[str, int], ...]` (a repeated option with two values; in YAML a
mapping or a list of pairs); `int | None` and the like have None as their default. A plugin that takes any
parameters has :class:`FreeParams`.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, TypeVar, cast, get_args, get_type_hints

from perun.core.errors import ConfigError

P = TypeVar("P")
_KEY = "perun.param"
PAIRS = tuple[tuple[str, str], ...]
NUMBERED = tuple[tuple[str, int], ...]
STRINGS = tuple[str, ...]
TYPES = (int, float, str, bool, STRINGS, PAIRS, NUMBERED)
"""The types that a parameter may have."""
_MAX_LISTED: Final = 60
"""Names that a hint lists at most; of more it lists the nearest."""
_LISTED_OF_MANY: Final = 10
_Wrong = Callable[[str], ConfigError]


class ParamInfo(NamedTuple):
    """What the declaration of one parameter says beyond its name, type and default; see :func:`param`."""

    help: str
    short: str = ""
    long: str = ""
    alias: str = ""
    metavar: str = ""
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    pair: tuple[str, str] | None = None
    parts: tuple[Any, ...] = ()
    argument: bool = False
    required: bool = False
    commands: Mapping[str, str] | None = None
    modes: Mapping[str, Mapping[str, Any]] | None = None
    formerly: tuple[str, ...] = ()


class ParamSpec(NamedTuple):
    """One parameter as the command line and the configuration see it."""

    name: str
    type: Any
    default: Any
    info: ParamInfo

    @property
    def flags(self) -> list[str]:
        """The option's spellings, the short one first: `['-w', '--warmup']`."""
        long = self.info.long or "--" + self.name.replace("_", "-")
        return [flag for flag in (self.info.short, long, self.info.alias) if flag]

    @property
    def has_default(self) -> bool:
        """Whether it has a default that may be told; a number below the minimum stands for "not given"."""
        if self.info.required or self.default is None or self.default is dataclasses.MISSING:
            return False
        return self.type not in (int, float) or self.info.minimum is None or self.default >= self.info.minimum

    def in_mode(self, mode: str) -> ParamSpec | None:
        """The parameter as the sub-command `mode` has it; None if it is no option of that."""
        if self.info.modes is None or mode not in self.info.modes:
            return None
        changes = dict(self.info.modes[mode])
        default = changes.pop("default", self.default)
        return self._replace(default=default, info=self.info._replace(**changes))


def param(
    default: Any,
    *,
    help: str,
    short: str = "",
    long: str = "",
    alias: str = "",
    metavar: str = "",
    choices: Sequence[str] = (),
    minimum: float | None = None,
    pair: tuple[str, str] | None = None,
    parts: Sequence[Any] = (),
    argument: bool = False,
    required: bool = False,
    commands: Mapping[str, str] | None = None,
    modes: Mapping[str, Mapping[str, Any]] | Sequence[str] | None = None,
    formerly: Sequence[str] = (),
) -> Any:
    """Declare a parameter: a dataclass field with its default, flag and help.

    :param short: short option, e.g. `-w`; :param long: long option if it is not `--<name>`;
        :param alias: another spelling of it.
    :param choices: the values allowed; :param minimum: smallest number allowed. A default below it may be
        given too, and stands for a number that is not given.
    :param pair: of pairs, what the two are called: then profiles note each as a mapping with these keys, and
        in YAML it may be one as well.
    :param parts: of texts that the command line takes together in one option, the type of each: `float`,
        `str` or a sequence of choices.
    :param argument: on the command line it is an argument in front of the options.
    :param required: the command line must give it, though the default is good for a configuration.
    :param commands: the parameter is given by a sub-command: its values, and the help of each.
    :param modes: the sub-commands that have it as their option, a mapping if it is not the same in all of
        them: to what is declared otherwise there (names as here, `default` among them). Other parameters are
        options in front of the sub-command.
    :param formerly: flags that it had before, which are taken and not listed.
    """
    own = None if modes is None else modes if isinstance(modes, Mapping) else {mode: {} for mode in modes}
    info = ParamInfo(
        help, short, long, alias, metavar, tuple(choices), minimum, pair, tuple(parts), argument, required,
        commands, own, tuple(formerly),
    )  # fmt: skip
    return dataclasses.field(default=default, metadata={_KEY: info})


@dataclass(frozen=True)
class NoParams:
    """Parameters of a plugin that has none."""


@dataclass(frozen=True)
class FreeParams:
    """Parameters of a plugin that declares none and takes all: names (with underscores) to values."""

    accepts_any: ClassVar[bool] = True
    values: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def specs(params: type) -> Iterator[ParamSpec]:
    """The parameters that the dataclass `params` declares, in order; none for :class:`FreeParams`."""
    if _accepts_any(params):
        return
    hints = get_type_hints(params)
    for field in dataclasses.fields(params):
        info = field.metadata.get(_KEY) or ParamInfo("")
        made = field.default_factory is not dataclasses.MISSING
        default = cast("Callable[[], Any]", field.default_factory)() if made else field.default
        hint = hints[field.name]
        if default is None:  # `int | None`: not given
            (hint,) = (one for one in get_args(hint) if one is not type(None))
        yield ParamSpec(field.name, hint, default, info)


def selector(params: type) -> ParamSpec | None:
    """The parameter that is given by a sub-command; None if the plugin has none."""
    return next((spec for spec in specs(params) if spec.info.commands), None)


def from_mapping(params: type[P], values: Mapping[str, Any] | None, where: str) -> P:
    """The dataclass `params` with `values` from a configuration or a YAML file; None is no value at all.

    A dash and an underscore in a key are the same.

    :param where: what the values belong to, for the message, e.g. `collector 'time' in local.yml`.
    :raises ConfigError: names the unknown key and its nearest right one, or the value of a wrong type.
    """
    named = _by_name(values, where)
    if _accepts_any(params):
        return params(values={name: value for name, (_, value) in named.items()})  # type: ignore[call-arg]
    known = {spec.name: spec for spec in specs(params)}
    given: dict[str, Any] = {}
    for name, (key, value) in named.items():
        if name not in known:
            raise ConfigError(f"{where}: unknown parameter {key!r}", nearest(key, known))
        unset = value is None and known[name].default is None
        given[name] = None if unset else _convert(known[name], value, where)
    for name, spec in known.items():
        if name not in given and spec.default is dataclasses.MISSING:
            raise ConfigError(f"{where}: the parameter {name} is missing", spec.info.help)
    try:
        return params(**given)
    except (TypeError, ValueError) as problem:  # from a `__post_init__` that looks at several values
        raise ConfigError(f"{where}: {problem}") from problem


def to_mapping(params: Any) -> dict[str, Any]:
    """The parameters as :func:`from_mapping` takes them: what a profile notes, lists for tuples."""
    if _accepts_any(type(params)):
        return dict(params.values)
    noted = {name: _lists(value) for name, value in dataclasses.asdict(params).items()}
    for field in dataclasses.fields(params):
        info = field.metadata.get(_KEY)
        if info and info.pair:
            noted[field.name] = [dict(zip(info.pair, two, strict=True)) for two in noted[field.name]]
    return noted


def _lists(value: Any) -> Any:
    return [_lists(one) for one in value] if isinstance(value, tuple) else value


def _accepts_any(params: type) -> bool:
    return bool(getattr(params, "accepts_any", False))


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint that names what is spelled nearest to `name`; if nothing is near, everything known, or what is
    nearest of very many."""
    candidates = sorted(known)
    close = difflib.get_close_matches(name.replace("-", "_"), candidates, n=3, cutoff=0.6)
    if close:
        return "did you mean " + " or ".join(repr(one) for one in close) + "?"
    if len(candidates) > _MAX_LISTED:
        some = difflib.get_close_matches(name, candidates, n=_LISTED_OF_MANY, cutoff=0.0)
        return f"known are {len(candidates):,}, the nearest of which are: {', '.join(some)}"
    return "known are: " + ", ".join(candidates) if candidates else "none are known"


def _by_name(values: Any, where: str) -> dict[str, tuple[str, Any]]:
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise ConfigError(f"{where}: parameters must be a mapping of names to values, not {values!r}")
    named: dict[str, tuple[str, Any]] = {}
    for key, value in values.items():
        name = str(key).replace("-", "_")
        if name in named:
            raise ConfigError(f"{where}: {name} is given twice", "a dash and an underscore are the same")
        named[name] = (str(key), value)
    return named


def _convert(spec: ParamSpec, value: Any, where: str) -> Any:
    def wrong(expected: str) -> ConfigError:
        return ConfigError(f"{where}: {spec.name} must be {expected}, not {value!r}")

    if spec.type is bool:
        if not isinstance(value, bool):
            raise wrong("true or false")
        return value
    if spec.type in (int, float):
        number = _number(spec.type, value, wrong)
        if spec.info.minimum is not None and number < spec.info.minimum and number != spec.default:
            raise wrong(f"at least {spec.info.minimum:g}")
        return number
    if spec.type == STRINGS:
        items = value if isinstance(value, (list, tuple)) else [value]
        return tuple(_choice(spec, _text(item, wrong), where) for item in items)
    if spec.type in (PAIRS, NUMBERED):
        return tuple(
            (
                _text(first, wrong),
                _number(int, second, wrong) if spec.type == NUMBERED else _text(second, wrong),
            )
            for first, second in _pairs(spec, value, wrong)
        )
    return _choice(spec, _text(value, wrong), where)


def _pairs(spec: ParamSpec, value: Any, wrong: _Wrong) -> Iterator[tuple[Any, Any]]:
    keys = spec.info.pair
    items = list(value.items()) if isinstance(value, Mapping) else value
    for item in items if isinstance(items, (list, tuple)) else [None]:
        if keys and isinstance(item, Mapping) and item.keys() == set(keys):
            yield item[keys[0]], item[keys[1]]
        elif isinstance(item, (list, tuple)) and len(item) == 2:
            yield item[0], item[1]
        else:
            named = f" or of mappings with the keys {keys[0]} and {keys[1]}" if keys else ""
            raise wrong(f"a mapping, or a list of pairs{named}")


def _number(type_: type, value: Any, wrong: _Wrong) -> Any:
    kind = "a whole number" if type_ is int else "a number"
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise wrong(kind)
    if type_ is int and isinstance(value, float) and not value.is_integer():
        raise wrong(kind)
    try:
        number = type_(value)
    except (ValueError, OverflowError):
        raise wrong(kind) from None
    if number != number:  # not a number: it would pass every comparison with a limit
        raise wrong(kind)
    return number


def _text(value: Any, wrong: _Wrong) -> str:
    # YAML turns unquoted numbers and dates into their types; anything else was not meant as text.
    if value is None or isinstance(value, (bool, bytes, Mapping, list, tuple, set, frozenset)):
        raise wrong("text")
    return str(value)


def _choice(spec: ParamSpec, value: str, where: str) -> str:
    for choice in spec.info.choices:
        if choice.casefold() == value.casefold():  # as the command line, where eBPF is ebpf
            return choice
    if spec.info.choices:
        known = ", ".join(spec.info.choices)
        hint = nearest(value, spec.info.choices)
        raise ConfigError(
            f"{where}: {spec.name} must be one of {known}, not {value!r}",
            "" if hint.startswith("known are") else hint,
        )
    return value
