"""The rules of the profile format (manual 2.1), applied to what a file or a plugin hands in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NoReturn

from perun.core.errors import ProfileError
from perun.profile.format.bulk import OLD_REGIONS, RawRows
from perun.profile.format.columns import is_stored, opened

TYPE: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_KINDS: Final = {
    dict: "a mapping", list: "a list", str: "text", int: "a number", float: "a number", bool: "true or false"
}  # fmt: skip
_MISSING: Final = object()


def validate(profile: Mapping[str, Any], source: str) -> None:
    """Check a profile in any layout that Perun reads.

    :param source: where it comes from, for the message: a path or the name of a plugin.
    :raises ProfileError: names the source, the key that is wrong and what was expected.
    """
    check = _Check(source)
    head(profile, source)
    check.models("models", profile.get("models", []))
    check.resources(profile.get("resource_type_map", {}), profile.get("resources", {}))
    check.old_global(profile.get("global", {}))
    check.snapshots(profile.get("snapshots", []))
    if not any(profile.get(region) for region in ("resources", *OLD_REGIONS)):
        check.some_region(profile)


def head(profile: Any, source: str) -> None:
    """Check everything but resources and models, as :func:`validate` does."""
    check = _Check(source)
    if not isinstance(profile, Mapping):
        check.fail("the profile", "a mapping", profile)
    header = check.mapping("header", profile.get("header", _MISSING))
    kind = check.text("header.type", header.get("type", _MISSING))
    if not TYPE.fullmatch(kind):
        # It stands in the header of an object, between blanks.
        check.fail("header.type", "letters, digits, '_', '.' or '-', at most 64", kind)
    for key in ("cmd", "args", "params", "workload"):
        check.scalar(f"header.{key}", header.get(key))
    check.mapping("header.units", header.get("units", {}))
    check.unit("collector_info", profile.get("collector_info", _MISSING))
    for path, unit in check.items("postprocessors", profile.get("postprocessors", [])):
        check.unit(path, unit)
    if profile.get("origin") is not None:
        check.text("origin", profile["origin"])


class _Check:
    """The checks of one profile; each raises on the first thing that is wrong."""

    def __init__(self, source: str) -> None:
        self.source = source

    def fail(self, path: str, expected: str, found: Any) -> NoReturn:
        if found is _MISSING:
            what = "it is missing"
        elif isinstance(found, str):
            what = f"found {_short(repr(found))}"
        else:
            what = f"found {_KINDS.get(type(found), 'nothing' if found is None else type(found).__name__)}"
        raise ProfileError(
            f"{self.source}: {path}: expected {expected}, {what}",
            "the file is damaged or no profile; section 2.1 of the manual describes the format",
        )

    def mapping(self, path: str, value: Any) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            self.fail(path, "a mapping", value)
        return value

    def items(self, path: str, value: Any) -> Iterator[tuple[str, Any]]:
        if not isinstance(value, (list, tuple)):
            self.fail(path, "a list", value)
        return ((f"{path}[{index}]", item) for index, item in enumerate(value))

    def text(self, path: str, value: Any) -> str:
        if not isinstance(value, str):
            self.fail(path, "text", value)
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                # JSON can spell half a surrogate pair; an index or a file name cannot.
                self.fail(path, "text that can be written as UTF-8", value)
        return value

    def scalar(self, path: str, value: Any) -> None:
        if isinstance(value, str):
            self.text(path, value)
        elif value is not None and not isinstance(value, (int, float)):
            self.fail(path, "text", value)

    def unit(self, path: str, value: Any) -> None:
        unit = self.mapping(path, value)
        name = self.text(f"{path}.name", unit.get("name", _MISSING))
        if not name or name.split() != [name]:
            # An index joins the names of postprocessors by blanks.
            self.fail(f"{path}.name", "a name without blanks", name)
        if unit.get("params") not in (None, ""):
            self.mapping(f"{path}.params", unit["params"])

    def models(self, path: str, value: Any) -> None:
        for place, model in self.items(path, value):
            self.mapping(place, model)
            if "coeffs" in model:
                self.coefficients(f"{place}.coeffs", model["coeffs"])

    def coefficients(self, path: str, value: Any) -> None:
        for place, coefficient in self.items(path, value):
            self.mapping(place, coefficient)
            self.text(f"{place}.name", coefficient.get("name", _MISSING))
            number = coefficient.get("value", _MISSING)
            if not isinstance(number, (int, float)):
                self.fail(f"{place}.value", "a number", number)

    def resources(self, type_map: Any, resources: Any) -> None:
        for key, constants in self.mapping("resource_type_map", type_map).items():
            if not isinstance(constants, dict):
                self.fail(f"resource_type_map.{_short(key)}", "a mapping", constants)
            if "snapshot" in constants:
                self.snapshot_numbers(f"resource_type_map.{_short(key)}", [constants["snapshot"]])
        for key, columns in self.mapping("resources", resources).items():
            if key not in type_map:
                self.fail(f"resource_type_map.{_short(key)}", "the constants of a group", _MISSING)
            if not isinstance(columns, dict):
                self.fail(f"resources.{_short(key)}", "a mapping of columns", columns)
            # There may be many groups: what to call one is only made up if it is wrong.
            lengths = {len(column) if is_stored(column) else -1 for column in columns.values()}
            if len(lengths) > 1 or -1 in lengths:
                self.wrong_columns(f"resources.{_short(key)}", columns)
            if "snapshot" in columns:
                self.snapshot_numbers(f"resources.{_short(key)}", opened(columns["snapshot"]))

    def wrong_columns(self, path: str, columns: Mapping[str, Any]) -> NoReturn:
        for name, column in columns.items():
            if not is_stored(column):
                self.fail(f"{path}.{_short(name)}", "a list", column)
        found = ", ".join(f"{len(column)} in {_short(name)}" for name, column in columns.items())
        raise ProfileError(
            f"{self.source}: {path}: expected columns of equal length, found {found}",
            "the file is damaged; collect the profile again or restore the file",
        )

    def snapshot_numbers(self, path: str, values: Iterable[Any]) -> None:
        for value in values:
            if type(value) is not int:
                self.fail(f"{path}.snapshot", "a whole number", value)

    def old_global(self, value: Any) -> None:
        if self.mapping("global", value):
            self.old_place("global", value)

    def snapshots(self, value: Any) -> None:
        for path, snapshot in self.items("snapshots", value):
            self.old_place(path, self.mapping(path, snapshot))

    def old_place(self, path: str, value: Mapping[str, Any]) -> None:
        resources = value.get("resources", _MISSING)
        if not isinstance(resources, RawRows):  # those are checked one by one, while they are decoded
            self.rows(f"{path}.resources", resources)
        self.models(f"{path}.models", value.get("models", []))

    def rows(self, path: str, value: Any) -> None:
        for place, resource in self.items(path, value):
            if not isinstance(resource, dict):
                self.fail(place, "a mapping", resource)
            if "snapshot" in resource:
                self.snapshot_numbers(place, [resource["snapshot"]])

    def some_region(self, profile: Mapping[str, Any]) -> None:
        regions = ("resources", *OLD_REGIONS)
        if all(region not in profile for region in regions):
            self.fail("resources", "the measured resources", _MISSING)
        for key, value in profile.items():
            # A profile that has resources only where nothing looks for them must not pass for an empty one.
            if key not in regions and isinstance(value, Mapping) and value.get("resources"):
                self.fail(_short(key), f"resources in one of the regions {', '.join(regions)}", value)


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."
