"""Older layouts of profiles, converted to the one that Perun writes (manual 2.1, `snapshots`).

Releases before 0.17 kept resources as plain lists, either in `snapshots[]` or in `global`. Very old ones
spelled some keys differently. Nothing here checks its input: `perun.profile.format.validation` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

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


def places(region: str, value: Any) -> Iterator[Place]:
    """Where an old region holds resources, which get the constants `snapshot` and `time` of their place."""
    if region == "global":
        time = value.get("time", value.get("timestamp"))
        yield Place(value.get("resources", ()), {} if time is None else {"time": time}, {})
        return
    for index, snapshot in enumerate(value):
        constants: dict[str, Any] = {"snapshot": index}
        if snapshot.get("time") is not None:
            constants["time"] = snapshot["time"]
        yield Place(snapshot.get("resources", ()), {}, constants)


class Place(NamedTuple):
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
