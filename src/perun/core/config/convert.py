"""Values of a configuration in the types that the table of keys wants, or an error that names the place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perun.core.config.reader import ConfigScalar, is_null, resolve_all
from perun.core.config.schema import (
    ALIASES,
    FALSE,
    KEYS,
    SECTIONS,
    SETTINGS_SECTION,
    TRUE,
    ConfigKey,
    KeyKind,
    Scope,
    nearest,
    put,
)
from perun.core.errors import ConfigError


def checked(given: Mapping[str, Any], source: str, kind: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The values of one layer in their types, and the warnings about it. Checking twice changes nothing.

    :param given: nested mappings; scalars may be :class:`~perun.core.config.reader.ConfigScalar`.
    :param source: name of the file for the messages.
    :param kind: `local` or `shared`.
    :raises ConfigError: names the file, the line if it is known, the key, and what is right.
    """
    layer = _Layer(source, kind)
    layer.walk(given, "")
    return layer.result, tuple(layer.warnings)


def convert(key: ConfigKey, value: Any, where: str) -> Any:
    """`value` in the type that the key wants.

    :param where: file and line of the value for the message.
    :raises ConfigError: if the value is not what the key wants.
    """
    if isinstance(value, tuple):
        value = list(value)
    if key.kind is KeyKind.TEXTS:
        items = value if isinstance(value, list) else [value]
        return [_convert_item(key, n, item, where) for n, item in enumerate(items, 1)]
    if key.kind is KeyKind.CHOICES and isinstance(value, list) and value:
        return [_scalar(key, KeyKind.CHOICES, item, where) for item in value]
    if key.kind is KeyKind.UNITS:
        units = value if isinstance(value, list) else [value]
        return [_unit(key, unit, where) for unit in units]
    if key.kind is KeyKind.RULES:
        if not isinstance(value, list):
            raise _wrong(key, value, where)
        return [_rule(key, rule, where) for rule in value]
    if key.kind is KeyKind.SETTINGS or key.kind is KeyKind.IGNORED:
        return resolve_all(value)
    return _scalar(key, key.kind, value, where)


class _Layer:
    """The values of one file while they are checked."""

    def __init__(self, source: str, kind: str) -> None:
        self.source = source
        self.kind = kind
        self.result: dict[str, Any] = {}
        self.warnings: list[str] = []

    def walk(self, given: Mapping[str, Any], section: str) -> None:
        for key, value in given.items():
            where = _where(self.source, key, value)
            if is_null(value):
                continue
            if not section and key in SECTIONS:
                if not isinstance(value, Mapping):
                    raise ConfigError(f"{where}: {key} is a section and must hold keys", _section_hint(key))
                self.walk(value, f"{key}.")
            else:
                self.take(section + key, value, where, nested="." not in key)

    def take(self, name: str, value: Any, where: str, nested: bool) -> None:
        if not nested and (name in KEYS or name in ALIASES):
            hint = f"write {name.partition('.')[2]} inside the section {name.partition('.')[0]}"
            raise ConfigError(f"{where}: sections are nested, not joined by dots: {name}", hint)
        key = KEYS.get(ALIASES.get(name, name))
        if key is None and name.startswith(SETTINGS_SECTION + ".") and isinstance(value, Mapping):
            key = KEYS["degradation.<method>"]
        if key is None or "<" in name:
            raise ConfigError(f"{where}: unknown key {name!r}", nearest(name))
        if self.is_misplaced(key, where):
            return
        if name in ALIASES:
            self.warnings.append(f"{where}: {name} is an old spelling, write {key.name}")
            if _holds(self.result, key.name):
                return
            name = key.name
        put(self.result, name, convert(key, value, where))

    def is_misplaced(self, key: ConfigKey, where: str) -> bool:
        if key.scope is Scope.SHARED and self.kind == "local":
            raise ConfigError(
                f"{where}: {key.name} is not allowed in a local configuration",
                f"set it in the shared one: perun config --shared set {key.name} ...",
            )
        if key.scope is Scope.LOCAL and self.kind == "shared":
            what = "has no effect here, it belongs in a local configuration"
            self.warnings.append(f"{where}: {key.name} {what}")
            return True
        return False


def _holds(mapping: Mapping[str, Any], name: str) -> bool:
    section, _, last = name.partition(".")
    return last in mapping.get(section, {})


def _where(source: str, key: str, value: Any = None) -> str:
    line = getattr(value, "line", 0) or getattr(key, "line", 0)
    return f"{source}:{line}" if line else source


def _section_hint(section: str) -> str:
    first = next(key for key in KEYS if key.startswith(section + "."))
    return f"e.g. `{first.partition('.')[2]}: ...` in an indented line below `{section}:`"


def _wrong(key: ConfigKey, value: Any, where: str, what: str = "") -> ConfigError:
    shown = repr(resolve_all(value))
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    return ConfigError(f"{where}: {key.name} must be {what or key.expected}, not {shown}", key.help)


def _scalar(key: ConfigKey, kind: KeyKind, value: Any, where: str) -> Any:
    where = _narrow(where, value)
    if isinstance(value, (Mapping, list)):
        raise _wrong(key, value, where)
    text = value if isinstance(value, str) else _spelled(value)
    if kind is KeyKind.BOOL:
        if text.strip().lower() in TRUE | FALSE:
            return text.strip().lower() in TRUE
        raise _wrong(key, value, where, "true or false" if key.kind is not kind else "")
    if kind is KeyKind.NUMBER:
        return _number(key, text, where)
    if kind in (KeyKind.CHOICE, KeyKind.CHOICES) and text not in key.choices:
        raise _wrong(key, value, where)
    if kind is KeyKind.REGEX:
        _check_regex(key, text, where)
    return str(text)


def _spelled(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


def _check_regex(key: ConfigKey, text: str, where: str) -> None:
    import re
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(text)
    except (re.error, RecursionError, OverflowError) as problem:
        raise ConfigError(f"{where}: {key.name} is not a regular expression: {problem}") from None


def _number(key: ConfigKey, text: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise _wrong(key, text, where) from None
    if number != number or number in (float("inf"), float("-inf")):
        raise _wrong(key, text, where)
    return number


def _narrow(where: str, value: Any) -> str:
    """`where` with the line of the value itself, where that is known."""
    line = getattr(value, "line", 0)
    head, _, tail = where.rpartition(":")
    return f"{head}:{line}" if line and tail.isdigit() else where


def _convert_item(key: ConfigKey, number: int, value: Any, where: str) -> str:
    if value is None or (isinstance(value, ConfigScalar) and value.plain and not value):
        raise ConfigError(f"{where}: item {number} of {key.name} is empty", 'write "" for an empty text')
    if isinstance(value, (Mapping, list)):
        where = _narrow(where, next(iter(value), ""))
        hint = "put a text that holds ': ' or begins with [ or { in quotes"
        what = f"item {number} of {key.name} must be text, not {resolve_all(value)!r}"
        raise ConfigError(f"{where}: {what}", hint)
    return str(_scalar(key, KeyKind.TEXT, value, where))


def _unit(key: ConfigKey, value: Any, where: str) -> dict[str, Any]:
    """One unit of the job matrix; its name alone is enough."""
    if isinstance(value, str) and value:
        return {"name": str(value), "params": {}}
    unit = _fields(
        key, value, where, {"name": KeyKind.TEXT, "params": KeyKind.SETTINGS}, ("name",), closed=True
    )
    return {"name": unit["name"], "params": _params(key, unit.get("params"), where)}


def _params(key: ConfigKey, value: Any, where: str) -> dict[str, Any]:
    """Parameters of a unit; the manual (7.3) also writes them as a list of mappings."""
    merged: dict[str, Any] = {}
    for part in value if isinstance(value, list) else [{} if value is None else value]:
        if not isinstance(part, Mapping):
            raise _wrong(key, part, where, "a mapping of params to values")
        for name, item in part.items():
            if name in merged:
                raise ConfigError(f"{where}: {key.name}: {name!r} of params is given twice")
            merged[name] = item
    return merged


def _rule(key: ConfigKey, value: Any, where: str) -> dict[str, Any]:
    return _fields(key, value, where, key.fields, key.required, key.closed)


def _fields(
    key: ConfigKey,
    value: Any,
    where: str,
    fields: Mapping[str, KeyKind],
    required: tuple[str, ...],
    closed: bool,
) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise _wrong(key, value, where, f"{key.kind.value} of " + ", ".join(fields))
    result: dict[str, Any] = {}
    for name, item in value.items():
        place = _narrow(where, name)
        if closed and name not in fields:
            known = "known are " + ", ".join(fields)
            raise ConfigError(f"{place}: {key.name}: unknown key {str(name)!r}", known)
        kind = fields.get(name, KeyKind.SETTINGS)
        if is_null(item) and name not in required:
            continue
        if kind is KeyKind.SETTINGS:
            result[str(name)] = resolve_all(item)
        else:
            result[str(name)] = _scalar(key, kind, item, place)
    for name in required:
        if not result.get(name):
            place = _narrow(where, next(iter(value), ""))
            raise ConfigError(f"{place}: {key.name}: a {name!r} is missing", key.help)
    return result
