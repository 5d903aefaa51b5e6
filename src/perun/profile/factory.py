"""Profiles in memory, and the grouping of their resources (manual 2.1 and 2.2).

Resources that agree in everything but their measured numbers are one group. What they share stands once
in `resource_type_map`, what differs in columns of equal length in `resources`, both under the same key:
the flattened uid, `#`, and the number of the group among those of that uid.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Any, Final, NamedTuple

from perun.profile import layouts
from perun.profile.grouping import COLUMNS, Shape, flatten, identity_of, shape_of, too_deep

__all__ = ["COLUMNS", "MODEL_GROUPS", "Configuration", "Profile", "flatten"]

MODEL_GROUPS: Final = ("model", "param", "nonparam", "both")
"""What :meth:`Profile.all_models` can be asked for."""

_NUMBERS: Final = (int, float)


class Configuration(NamedTuple):
    """What was measured and how; profiles of equal configurations may be compared (manual 8.1).

    In names of units a dash is an underscore, as both spellings mean the same plugin.
    """

    collector: str
    cmd: str
    args: str
    workload: str
    postprocessors: tuple[str, ...]

    @classmethod
    def of(
        cls, collector: str, cmd: str, args: str, workload: str, postprocessors: Iterable[str]
    ) -> Configuration:
        """The configuration with names of units in either spelling."""
        return cls(_plain(collector), cmd, args, workload, tuple(map(_plain, postprocessors)))


class Profile(MutableMapping[str, Any]):
    """One performance profile: a mapping of the regions of the manual's section 2.1.

    It is made from the same arguments as a `dict`, whose values it takes over without a copy. The older
    regions `global` and `snapshots` are accepted and become `resources`, `resource_type_map` and `models`.

    :ivar _storage: the regions, in the layout that is written.
    :ivar _tuple_to_resource_type_map: constants and names of columns of a group, to the key of the group.
    :ivar _uid_counter: number of groups of each flattened uid.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._storage: dict[str, Any] = {"resources": {}, "resource_type_map": {}, "models": []}
        self._forget_groups()
        regions: dict[str, Any] = dict(*args, **kwargs)
        # Old regions come last, as they add to the groups of the new ones.
        for key in sorted(regions, key=layouts.OLD_REGIONS.__contains__):
            self[key] = regions[key]

    def __getitem__(self, key: str) -> Any:
        return self._storage[key]

    def __setitem__(self, key: str, value: Any) -> None:
        if key in layouts.OLD_REGIONS:
            self.update_resources(layouts.resources(key, value))
            self["models"] = self.get("models", []) + layouts.region_models(key, value)
            return
        self._storage[key] = _converted(key, value)
        if key in ("resources", "resource_type_map"):
            self._forget_groups()

    def __delitem__(self, key: str) -> None:
        del self._storage[key]
        if key in ("resources", "resource_type_map"):
            self._forget_groups()

    def __iter__(self) -> Iterator[str]:
        return iter(self._storage)

    def __len__(self) -> int:
        return len(self._storage)

    def __repr__(self) -> str:
        return f"<Profile {self.type or 'of no type'}, {len(self._columns)} groups of resources>"

    @property
    def type(self) -> str:
        """The type in the header, e.g. `time`; empty where there is none yet."""
        return str(self.get("header", {}).get("type", ""))

    @property
    def configuration(self) -> Configuration:
        """What was measured and how."""
        head = self.get("header", {})
        return Configuration.of(
            self.get("collector_info", {}).get("name", ""),
            head.get("cmd", ""),
            head.get("args", ""),
            head.get("workload", ""),
            [one.get("name", "") for one in self.get("postprocessors", ())],
        )

    def copy(self) -> Profile:
        """A profile whose resources, models and regions can be changed without changing this one.

        Values nested in a resource (a trace, a uid) are shared.
        """
        return Profile(
            {
                **{key: _shallow(value) for key, value in self._storage.items()},
                "resources": {
                    key: {name: list(column) for name, column in columns.items()}
                    for key, columns in self._columns.items()
                },
            }
        )

    def serialize(self) -> dict[str, Any]:
        """The regions as they are written to JSON; its values are those of the profile, not copies."""
        return dict(self._storage)

    def update_resources(
        self,
        resources: Iterable[Mapping[str, Any]],
        *,
        columns: Iterable[str] = (),
        replace: bool = False,
    ) -> None:
        """Add resources, or put them in the place of all there are.

        :param columns: fields that are columns beside :data:`COLUMNS`, where all their values are numbers,
            e.g. the size that a workload generator adds. Such columns of the profile stay columns.
        :param replace: drop the present resources first; `resources` may be made from them.
        :raises ProfileError: where a resource is nested too deeply.
        """
        incoming = list(resources)
        names = COLUMNS | self._own_columns() | _numeric(columns, incoming)
        if replace:
            self["resources"], self["resource_type_map"] = {}, {}
        try:
            self._recall_groups()
            self._add(incoming, names)
        except RecursionError:
            raise too_deep("a resource") from None

    def all_resources(self, flatten_values: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
        """Each resource with the number of its snapshot, group by group.

        The dictionary is the caller's, the values nested in it are not: do not change those.

        :param flatten_values: give constants that are nested (a trace, a uid) as text, see :func:`flatten`.
        """
        for key, columns in self._columns.items():
            constants = self._constants.get(key, {})
            if flatten_values:
                constants = {name: flatten(value) for name, value in constants.items()}
            if not columns:
                yield constants.get("snapshot", 0), dict(constants)
                continue
            names = tuple(columns)
            for row in zip(*columns.values(), strict=True):
                resource = {**constants, **dict(zip(names, row, strict=True))}
                yield resource.get("snapshot", 0), resource

    def all_snapshots(self) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        """Each snapshot that has resources, in order, with all of them."""
        snapshots: dict[int, list[dict[str, Any]]] = {}
        for number, resource in self.all_resources():
            snapshots.setdefault(number, []).append(resource)
        yield from sorted(snapshots.items(), key=lambda item: item[0])

    def all_models(self, group: str = "model") -> Iterator[tuple[int, dict[str, Any]]]:
        """Each model with its position in the region `models`.

        :param group: `model` and `both` give all models, `param` those with coefficients, `nonparam` those
            without (regressogram, moving average, kernel regression).
        """
        if group not in MODEL_GROUPS:
            raise ValueError(f"no group of models is called {group!r}")
        for position, model in enumerate(self.get("models", ())):
            if group in ("model", "both") or (group == "param") == ("coeffs" in model):
                yield position, model

    def _add(self, resources: list[Mapping[str, Any]], names: frozenset[str]) -> None:
        groups, keys = self._columns, self._tuple_to_resource_type_map
        shapes: dict[tuple[str, ...], Shape] = {}
        for resource in resources:
            fields = tuple(resource)
            shape = shapes.get(fields)
            if shape is None:
                shape = shapes[fields] = shape_of(fields, names)
            identity = identity_of(shape, resource)
            key = keys.get(identity)
            # A group without columns stands for one resource, so its like needs another group.
            if key is None or not shape[1]:
                key = keys[identity] = self._new_group(shape, resource)
            columns = groups[key]
            for name in shape[1]:
                columns[name].append(resource[name])

    def _new_group(self, shape: Shape, resource: Mapping[str, Any]) -> str:
        uid = str(flatten(resource.get("uid", "")))
        key = f"{uid}#{self._uid_counter[uid]}"
        self._uid_counter[uid] += 1
        self._constants[key] = {name: resource[name] for name in shape[0]}
        self._columns[key] = {name: [] for name in shape[1]}
        return key

    @property
    def _columns(self) -> dict[str, dict[str, list[Any]]]:
        columns: dict[str, dict[str, list[Any]]] = self._storage.setdefault("resources", {})
        return columns

    @property
    def _constants(self) -> dict[str, dict[str, Any]]:
        constants: dict[str, dict[str, Any]] = self._storage.setdefault("resource_type_map", {})
        return constants

    def _forget_groups(self) -> None:
        self._tuple_to_resource_type_map: dict[tuple[Any, ...], str] = {}
        self._uid_counter: Counter[str] = Counter()

    def _recall_groups(self) -> None:
        # Only a profile that is added to needs these, so reading one does not pay for them.
        if self._uid_counter:
            return
        for key in (*self._constants, *self._columns):
            uid, _, number = key.rpartition("#")
            if number.isdecimal() and len(number) < 19:  # a longer one is no count of ours
                self._uid_counter[uid] = max(self._uid_counter[uid], int(number) + 1)
        for key, columns in self._columns.items():
            constants = self._constants.get(key, {})
            shape = tuple(sorted(constants)), tuple(sorted(columns))
            self._tuple_to_resource_type_map.setdefault(identity_of(shape, constants), key)

    def _own_columns(self) -> frozenset[str]:
        groups = self._columns.values()
        found = {name for columns in groups for name in columns} - COLUMNS
        return frozenset(
            name
            for name in found
            if all(type(value) in _NUMBERS for columns in groups for value in columns.get(name, ()))
        )


def _numeric(names: Iterable[str], resources: list[Mapping[str, Any]]) -> frozenset[str]:
    return frozenset(
        name for name in names if all(type(resource.get(name, 0)) in _NUMBERS for resource in resources)
    )


def _converted(key: str, value: Any) -> Any:
    if key == "header":
        return layouts.header(value)
    if key == "collector_info":
        return layouts.unit(value)
    if key == "postprocessors":
        return [layouts.unit(one) for one in value]
    if key == "models":
        return layouts.models(value)
    return value


def _shallow(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: dict(one) if isinstance(one, dict) else one for key, one in value.items()}
    if isinstance(value, list):
        return [dict(one) if isinstance(one, dict) else one for one in value]
    return value


def _plain(name: str) -> str:
    return name.replace("-", "_")
