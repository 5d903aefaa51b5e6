"""The profile in memory, and the grouping of its resources (manual 2.1 and 2.2).

Resources that agree in everything but their measured numbers are one group. What they share stands once
in `resource_type_map`, what differs in columns of equal length in `resources`, both under the same key:
the flattened uid, `#`, and the number of the group among those of that uid.

Long columns of numbers are packed (:mod:`perun.profile.format.columns`), those of very large profiles
compressed (:mod:`perun.profile.format.columns`). Who asks for the region `resources` gets the documented
lists, which are the profile's from then on; who goes through :meth:`Profile.groups`, as all of Perun does,
leaves the columns as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Final

from perun.core.errors import ProfileError
from perun.profile.format import bulk
from perun.profile.format.bulk import RawRows
from perun.profile.format.columns import (
    CompressedColumn,
    StoredColumn,
    extended,
    open_columns,
    opened,
    pack,
    unpacked,
    with_stored_columns,
)
from perun.profile.format.grouping import COLUMNS, Grouping, ResourceGroup, identity_of
from perun.profile.head import Configuration, ProfileHeader
from perun.profile.uid import flatten, may_have_uid, too_deep

if TYPE_CHECKING:
    from perun.models.record import ModelRecord

MODEL_GROUPS: Final = ("model", "param", "nonparam", "both")
"""What :meth:`Profile.all_models` can be asked for."""

_NUMBERS: Final = (int, float)


class Profile(MutableMapping[str, Any]):
    """One performance profile: a mapping of the regions of the manual's section 2.1.

    It is made from the same arguments as a `dict`, whose values it takes over without a copy. The older
    regions `global` and `snapshots` are accepted and become `resources`, `resource_type_map` and `models`.

    :ivar _storage: the regions, in the layout that is written; columns may be packed.
    :ivar _tuple_to_resource_type_map: constants and names of columns of a group, to the key of the group.
    :ivar _uid_counter: number of groups of each flattened uid.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._storage: dict[str, Any] = {"resources": {}, "resource_type_map": {}, "models": []}
        self._may_be_packed = False
        self._drop_group_index()
        regions: dict[str, Any] = dict(*args, **kwargs)
        # Old regions come last, as they add to the groups of the new ones.
        for key in sorted(regions, key=bulk.OLD_REGIONS.__contains__):
            self[key] = regions[key]

    def __getitem__(self, key: str) -> Any:
        if key == "resources" and self._may_be_packed:
            self._unpack()
        return self._storage[key]

    def __setitem__(self, key: str, value: Any) -> None:
        if key in bulk.OLD_REGIONS:
            self._add_places(bulk.places(key, value))
            self["models"] = self.get("models", []) + bulk.region_models(key, value)
            return
        self._storage[key] = _converted(key, value)
        if key in ("resources", "resource_type_map"):
            self._may_be_packed = True
            self._drop_group_index()

    def __delitem__(self, key: str) -> None:
        del self._storage[key]
        if key in ("resources", "resource_type_map"):
            self._drop_group_index()

    def __iter__(self) -> Iterator[str]:
        return iter(self._storage)

    def __len__(self) -> int:
        return len(self._storage)

    def __repr__(self) -> str:
        return f"<Profile {self.type or 'of no type'}, {len(self._columns)} groups of resources>"

    @property
    def type(self) -> str:
        """The type in the header, e.g. `time`; empty if there is none yet."""
        return str(self.get("header", {}).get("type", ""))

    @property
    def configuration(self) -> Configuration:
        """What was measured and how."""
        return ProfileHeader.of(self).configuration

    def copy(self) -> Profile:
        """A profile whose resources, models and regions can be changed without changing this one.

        Values nested in a resource (a trace, a uid) are shared.
        """
        return Profile(
            {
                **{key: _shallow(value) for key, value in self._storage.items() if key != "resources"},
                "resources": {
                    key: {name: _copied(column) for name, column in columns.items()}
                    for key, columns in self._columns.items()
                },
            }
        )

    def serialize(self) -> dict[str, Any]:
        """The regions as they are written to JSON; their values are those of the profile, not copies."""
        return dict(self)

    def regions(self) -> dict[str, Any]:
        """As :meth:`serialize`, but with columns that are packed or compressed left as they are; for reading
        only."""
        return dict(self._storage)

    def update_resources(
        self,
        resources: Iterable[Mapping[str, Any]],
        *,
        columns: Iterable[str] = (),
        replace: bool = False,
    ) -> None:
        """Add resources, or put them in the place of all there are.

        They are gone through once, and nothing is changed before the last one was seen.

        :param columns: fields that are columns beside :data:`COLUMNS`, if all their values are numbers,
            e.g. the size that a workload generator adds. Such columns of the profile stay columns.
        :param replace: drop the present resources first; `resources` may be made from them.
        :raises ProfileError: if a resource is nested too deeply.
        """
        names = COLUMNS | self._own_columns()
        asked = set(columns) - names
        if asked:
            resources = list(resources)
            names |= _numeric(asked, resources)
        incoming = Grouping(names)
        try:
            incoming.add(resources)
            if replace:
                self["resources"], self["resource_type_map"] = {}, {}
            self._build_group_index()
        except RecursionError:
            raise too_deep("a resource") from None
        self._merge(incoming)

    def add_groups(self, groups: Iterable[ResourceGroup], values: Mapping[str, int]) -> None:
        """Add the resources of groups, as of another profile, which stays as it is.

        :param values: fields that all of these resources get besides, in columns of their own.
        """
        self._build_group_index()
        for group in groups:
            if not group.size:
                continue
            columns = {name: list(column) for name, column in group.columns.items()}
            columns |= {name: [value] * group.size for name, value in values.items()}
            shape = tuple(sorted(group.constants)), tuple(sorted(columns))
            self._add(identity_of(shape, group.constants), dict(group.constants), columns)

    def groups(self, uids: Container[str] | None = None) -> Iterator[ResourceGroup]:
        """Each group of resources with its constants and columns, which are for reading only.

        Columns of a large profile are packed; going through them needs no dictionary per resource. Of a very
        large one they are unpacked one by one, when they are asked for, and kept no longer than the group.

        :param uids: leave out groups of other uids, given as text (:func:`flatten`); those whose resources
            differ in their uids are given.
        :raises ProfileError: if a group has columns of unequal length.
        """
        type_map = self._constants
        for key, columns in self._columns.items():
            constants = type_map.get(key, {})
            if uids is not None and not may_have_uid(constants, uids):
                continue
            sizes = set(map(len, columns.values()))
            if len(sizes) > 1:
                raise ProfileError(f"resources of {key!r}: the columns are of unequal length")
            yield ResourceGroup(key, constants, open_columns(columns), sizes.pop() if sizes else 1)

    def all_resources(self, flatten_values: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
        """Each resource with the number of its snapshot, group by group.

        The dictionary is the caller's, the values nested in it are not: do not change those.

        :param flatten_values: give constants that are nested (a trace, a uid) as text, see :func:`flatten`.
        """
        for _, constants, columns, _ in self.groups():
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

    def all_filtered_models(self, models_strategy: str) -> dict[str, ModelRecord]:
        """Models chosen by a strategy of `perun check --models-type` (manual 2.2 and 3.2).

        :param models_strategy: `best-model`, `best-param` and `best-nonparam` give the best model of each
            uid, by uid, see :mod:`perun.models.regression.methods`. `best-both` gives the best parametric and
            the best non-parametric one, `all-models`, `all-param` and `all-nonparam` all models of each uid;
            these are by the uid and the type of the model, as in `main, linear`, and where that is not
            enough by the interval and a number besides.
        :raises UsageError: names the strategy that does not exist.
        """
        from perun.profile.strategies import named_models

        return named_models((model for _, model in self.all_models()), models_strategy)

    def _add_places(self, places: Iterable[bulk.ResourceBlock]) -> None:
        incoming = Grouping(COLUMNS | self._own_columns())
        try:
            for place in places:
                if isinstance(place.resources, RawRows):
                    place.resources.add_to(incoming, place)
                else:
                    incoming.add(place.complete(place.resources))
            self._build_group_index()
        except RecursionError:
            raise too_deep("a resource") from None
        self._merge(incoming)

    def _merge(self, incoming: Grouping) -> None:
        for _, identity, constants, columns in incoming.groups:
            self._add(identity, constants, columns)

    def _add(
        self, identity: tuple[Any, ...], constants: dict[str, Any], values: dict[str, list[Any]]
    ) -> None:
        key = self._tuple_to_resource_type_map.get(identity)
        # A group without columns stands for one resource, so its like needs another group.
        if key is not None and values:
            columns = self._columns[key]
            for name, column in values.items():
                columns[name] = extended(opened(columns[name]), column)
            return
        uid = str(flatten(constants.get("uid", "")))
        key = f"{uid}#{self._uid_counter[uid]}"
        self._uid_counter[uid] += 1
        self._tuple_to_resource_type_map[identity] = key
        self._constants[key] = constants
        self._columns[key] = {name: pack(column) for name, column in values.items()}
        self._may_be_packed = True

    @property
    def _columns(self) -> dict[str, dict[str, StoredColumn]]:
        columns: dict[str, dict[str, StoredColumn]] = self._storage.setdefault("resources", {})
        return columns

    @property
    def _constants(self) -> dict[str, dict[str, Any]]:
        constants: dict[str, dict[str, Any]] = self._storage.setdefault("resource_type_map", {})
        return constants

    def pack(self) -> None:
        """Pack the long columns of numbers; only the memory that they take changes."""
        for columns in self._columns.values():
            for name, column in columns.items():
                if isinstance(column, list):
                    columns[name] = pack(column)
        self._may_be_packed = True

    def _unpack(self) -> None:
        for columns in self._storage.get("resources", {}).values():
            for name, column in columns.items():
                if not isinstance(column, list):
                    columns[name] = unpacked(opened(column))
        self._may_be_packed = False

    def _drop_group_index(self) -> None:
        self._tuple_to_resource_type_map: dict[tuple[Any, ...], str] = {}
        self._uid_counter: Counter[str] = Counter()

    def _build_group_index(self) -> None:
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
            if all(
                not isinstance(column, list) or all(type(value) in _NUMBERS for value in column)
                for column in (columns.get(name, ()) for columns in groups)
            )
        )


def _numeric(names: Iterable[str], resources: list[Mapping[str, Any]]) -> frozenset[str]:
    return frozenset(
        name for name in names if all(type(resource.get(name, 0)) in _NUMBERS for resource in resources)
    )


def _converted(key: str, value: Any) -> Any:
    if key == "header":
        return bulk.header(value)
    if key == "collector_info":
        return bulk.unit(value)
    if key == "postprocessors":
        return [bulk.unit(one) for one in value]
    if key == "models":
        return bulk.models(value)
    if key == "resources":
        return with_stored_columns(value)
    return value


def _copied(column: StoredColumn) -> StoredColumn:
    if isinstance(column, CompressedColumn):
        return column  # nobody changes it: what is added to makes a packed one of it
    return column[:]


def _shallow(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: dict(one) if isinstance(one, dict) else one for key, one in value.items()}
    if isinstance(value, list):
        return [dict(one) if isinstance(one, dict) else one for one in value]
    return value
