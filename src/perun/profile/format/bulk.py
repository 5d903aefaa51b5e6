"""Large profiles decoded from JSON piece by piece, so that no dictionary of a resource is kept.

msgspec finds the pieces: of today's layout each column, which is decoded and packed by itself, and each
constant, of which equal ones are decoded once; of the older layouts each resource, which is decoded when
somebody asks for the next one. msgspec is stricter than Python: NaN, Infinity and half surrogate pairs,
which older releases could write, are errors to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from perun.profile.format.columns import Column, pack_decoded

if TYPE_CHECKING:
    from msgspec import Raw

    from perun.profile.format.grouping import Grouping


_BATCH: Final = 2048  # resources; with more of them the garbage collector visits more objects
_LARGE_COLUMN: Final = 1 << 20
_LONGEST_NUMBER: Final = 1 << 10
_MIN_UNIFORM_ROWS: Final = 64  # resources from which on a decoder of their own fields saves time


class Unsuitable(Exception):
    """The JSON, or what it holds, is not what can be read this way; another reader may say what is wrong."""


class RawRows:
    """The resources of one place of an older layout, not decoded yet."""

    def __init__(self, text: Raw) -> None:
        self._text = text

    def add_to(self, grouping: Grouping, place: ResourceBlock) -> None:
        """Put the resources, with what `place` adds to each, into their groups.

        :raises Unsuitable: if one is not in the format.
        """
        import msgspec

        with _errors_as_unsuitable():
            texts = msgspec.json.decode(self._text, type=list[msgspec.Raw])
            uniform: _UniformRows | None = None
            for start in range(0, len(texts), _BATCH):
                batch = texts[start : start + _BATCH]
                if uniform is None or not uniform.add(batch):
                    uniform = _UniformRows.of(batch, grouping, place)
                    if uniform is None or not uniform.add(batch):
                        grouping.add(place.complete(_checked(batch)))


def _checked(texts: Iterable[Raw]) -> Iterator[dict[str, Any]]:
    import msgspec

    decode = msgspec.json.Decoder(dict[str, Any]).decode
    for text in texts:
        row = decode(text)
        if "snapshot" in row and type(row["snapshot"]) is not int:
            raise Unsuitable
        yield row


class _UniformRows:
    """Adds resources that all have the same fields.

    Constants are compared as JSON text, and decoded once for all resources that have the same text.

    :param spelled: names of the constants to be compared as JSON; :param plain: of those that are text.
    :param columns: names of the columns, sorted.
    """

    def __init__(
        self,
        spelled: tuple[str, ...],
        plain: tuple[str, ...],
        columns: tuple[str, ...],
        grouping: Grouping,
        place: ResourceBlock,
    ) -> None:
        self._constants = (*spelled, *plain)
        self._spelled = len(spelled)
        self._columns = columns
        self._decode = _row_decoder(spelled, plain, columns)
        self._grouping = grouping
        self._place = place
        self._known: dict[tuple[Any, ...], list[list[Any]]] = {}

    @classmethod
    def of(cls, texts: list[Raw], grouping: Grouping, place: ResourceBlock) -> _UniformRows | None:
        """What adds resources with the fields of the first one; None if that would not save time."""
        if len(texts) < _MIN_UNIFORM_ROWS:
            return None
        first = next(_checked(texts))
        columns = sorted(grouping.columns.intersection(first))
        placed = place.defaults.keys() | place.overrides.keys()
        if not columns or "snapshot" in first or placed & grouping.columns:
            return None
        constants = [name for name in first if name not in grouping.columns]
        spelled = (name for name in constants if not isinstance(first[name], str))
        plain = (name for name in constants if isinstance(first[name], str))
        return cls(tuple(spelled), tuple(plain), tuple(columns), grouping, place)

    def add(self, texts: list[Raw]) -> bool:
        """Add resources; False if one of them has other fields, and then none is added."""
        import msgspec

        try:
            rows = list(map(msgspec.structs.astuple, map(self._decode, texts)))
        except msgspec.ValidationError:
            return False
        for key, own in self._by_constants(rows).items():
            if key not in self._known:
                self._known[key] = self._columns_of(key, own[0])
            for column, more in zip(self._known[key], zip(*own, strict=True), strict=True):
                column.extend(more)
        return True

    def _by_constants(self, rows: list[tuple[Any, ...]]) -> dict[tuple[Any, ...], list[tuple[Any, ...]]]:
        """The values of columns of those rows that have the same constants."""
        keys: Iterable[tuple[Any, ...]] = map(itemgetter(slice(len(self._constants))), rows)
        if self._spelled:
            keys = [(*map(bytes, key[: self._spelled]), *key[self._spelled :]) for key in keys]
        found = _RowsByKey()
        values = map(itemgetter(slice(len(self._constants), None)), rows)
        for add, value in zip(map(found.__getitem__, keys), values, strict=True):
            add(value)
        return found.rows

    def _columns_of(self, key: tuple[Any, ...], row: tuple[Any, ...]) -> list[list[Any]]:
        values = (*map(_decoded, key[: self._spelled]), *key[self._spelled :], *row)
        resource = dict(zip((*self._constants, *self._columns), values, strict=True))
        (complete,) = self._place.complete([resource])
        return self._grouping.columns_of(complete)


@lru_cache(maxsize=64)
def _row_decoder(
    spelled: tuple[str, ...], plain: tuple[str, ...], columns: tuple[str, ...]
) -> Callable[[Raw], Any]:
    """Decodes a resource with exactly these fields, to JSON text, to text, and to any value."""
    import msgspec

    kinds = [
        (name, kind)
        for names, kind in ((spelled, msgspec.Raw), (plain, str), (columns, Any))
        for name in names
    ]
    row = msgspec.defstruct(
        "Row",
        [(f"_{number}", kind) for number, (_, kind) in enumerate(kinds)],
        rename={f"_{number}": name for number, (name, _) in enumerate(kinds)},
        forbid_unknown_fields=True,
        gc=False,
    )
    return msgspec.json.Decoder(row).decode


class _RowsByKey(dict[tuple[Any, ...], Callable[[tuple[Any, ...]], None]]):
    """By key, a function that adds a row to `rows[key]`; made when the key is first looked up."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}

    def __missing__(self, key: tuple[Any, ...]) -> Callable[[tuple[Any, ...]], None]:
        own = self.rows[key] = []
        self[key] = own.append
        return own.append


def regions(data: bytes) -> dict[str, Any]:
    """The regions of a profile in any layout, columns packed; resources of older ones as :class:`RawRows`.

    Only the JSON is checked, see :func:`perun.profile.format.validation.validate`.

    :raises Unsuitable: if msgspec does not take `data`.
    """
    import msgspec

    with _errors_as_unsuitable():
        texts = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        return {key: _READERS.get(key, _decoded)(text) for key, text in texts.items()}


@contextmanager
def _errors_as_unsuitable() -> Iterator[None]:
    import msgspec

    try:
        yield
    except (msgspec.MsgspecError, ValueError, RecursionError) as problem:
        raise Unsuitable from problem


def _decoded(text: Raw | bytes) -> Any:
    import msgspec

    return msgspec.json.decode(text)


def _split(text: Raw, levels: int) -> Any:
    """Nested mappings, decoded to that many levels; the values of the last one are left as JSON.

    None if the JSON is something else.
    """
    import msgspec

    kind: Any = msgspec.Raw
    for _ in range(levels):
        kind = dict[str, kind]
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError:
        return None


def _resources(text: Raw) -> Any:
    groups = _split(text, 2)
    if groups is None:
        return _decoded(text)
    for columns in groups.values():
        for name, column in columns.items():
            columns[name] = _column(column)
    return groups


def _column(text: Raw) -> Any:
    view = memoryview(text)
    if len(view) > _LARGE_COLUMN and (packed := _packed_in_slices(view)) is not None:
        return packed
    values = _decoded(text)
    return pack_decoded(values, text) if isinstance(values, list) else values


def _packed_in_slices(text: memoryview) -> Column | None:
    """A long column, decoded slice by slice to save memory; None if its values are not all of one kind."""
    import msgspec

    found: Any = None
    start, end = 1, len(text) - 1
    while start < end:
        stop = end
        if end - start > 2 * _LARGE_COLUMN:
            stop = start + _LARGE_COLUMN
            comma = bytes(text[stop : stop + _LONGEST_NUMBER]).find(b",")
            if comma < 0:
                return None
            stop += comma
        piece = b"[" + bytes(text[start:stop]) + b"]"
        try:
            packed = pack_decoded(msgspec.json.decode(piece, type=list[Any]), piece)
        except msgspec.MsgspecError:
            return None  # there are lists in it
        if isinstance(packed, list) or (found is not None and packed.typecode != found.typecode):
            return None
        if found is None:
            found = packed
        else:
            found.extend(packed)
        start = stop + 1
    return found  # type: ignore[no-any-return]


def _constants(text: Raw) -> Any:
    groups = _split(text, 2)
    if groups is None:
        return _decoded(text)
    known: dict[bytes, Any] = {}
    for constants in groups.values():
        for name, value in constants.items():
            spelling = bytes(value)
            if spelling not in known:
                known[spelling] = _decoded(spelling)
            constants[name] = known[spelling]
    return groups


def _global(text: Raw) -> Any:
    place = _split(text, 1)
    return _decoded(text) if place is None else _place(place)


def _snapshots(text: Raw) -> Any:
    import msgspec

    try:
        places = msgspec.json.decode(text, type=list[dict[str, msgspec.Raw]])
    except msgspec.ValidationError:
        return _decoded(text)
    return [_place(place) for place in places]


def _place(texts: dict[str, Raw]) -> dict[str, Any]:
    return {key: RawRows(text) if key == "resources" else _decoded(text) for key, text in texts.items()}


_READERS: Final[dict[str, Callable[[Raw], Any]]] = {
    "resources": _resources,
    "resource_type_map": _constants,
    "global": _global,
    "snapshots": _snapshots,
}


# Older layouts of profiles, converted to the one that Perun writes (manual 2.1, `snapshots`).
#
# Releases before 0.17 kept resources as plain lists, either in `snapshots[]` or in `global`. Very old ones
# spelled some keys differently. Nothing here checks its input: `perun.profile.format.validation` does.

OLD_REGIONS = ("global", "snapshots")
"""Keys of a profile that hold resources and models in an older layout."""

_MODEL_KEYS = {"x_interval_start": "x_start", "x_interval_end": "x_end"}
_HEADER_KEYS = {"bin": "cmd", "params": "args"}
_HEADER_TEXTS = ("cmd", "args", "workload")


def header(old: Mapping[str, Any]) -> dict[str, Any]:
    """The region `header` with its keys of today, and with text if YAML made a number of a workload.

    A key that is there by both names stays as it is.
    """
    new = _renamed(old, _HEADER_KEYS)
    for key in _HEADER_TEXTS:
        if key in new and not isinstance(new[key], str):
            new[key] = "" if new[key] is None else str(new[key])
    return new


def unit(old: Mapping[str, Any]) -> dict[str, Any]:
    """`collector_info` or one of `postprocessors`, with a mapping if old files say `"params": ""`."""
    new = dict(old)
    new["params"] = new.get("params") or {}
    return new


def models(old: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Models with `x_start` and `x_end`; the list itself if no model spells them otherwise."""
    if not any(key in model for model in old for key in _MODEL_KEYS):
        return old
    return [_renamed(model, _MODEL_KEYS) for model in old]


def _renamed(old: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The mapping with the new name for each old one; an old one stays where the new one is there, too."""
    return {key if names.get(key, key) in old else names[key]: value for key, value in old.items()}


def places(region: str, value: Any) -> Iterator[ResourceBlock]:
    """Where an old region holds resources, which get the constants `snapshot` and `time` of their place."""
    if region == "global":
        time = value.get("time", value.get("timestamp"))
        yield ResourceBlock(value.get("resources", ()), {} if time is None else {"time": time}, {})
        return
    for index, snapshot in enumerate(value):
        constants: dict[str, Any] = {"snapshot": index}
        if snapshot.get("time") is not None:
            constants["time"] = snapshot["time"]
        yield ResourceBlock(snapshot.get("resources", ()), {}, constants)


class ResourceBlock(NamedTuple):
    """Resources with what they get beside their own fields, as a default or in place of these."""

    resources: Iterable[dict[str, Any]]
    defaults: dict[str, Any]
    overrides: dict[str, Any]

    def complete(self, resources: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
        """Resources of this place, complete."""
        return ({**self.defaults, **resource, **self.overrides} for resource in resources)


def region_models(region: str, value: Any) -> list[dict[str, Any]]:
    """The models of an old region."""
    places = [value] if region == "global" else value
    return [model for place in places for model in place.get("models") or ()]
