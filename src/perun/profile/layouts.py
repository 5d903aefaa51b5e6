"""Older layouts of profiles, converted to the one that Perun writes (manual 2.1, `snapshots`).

Releases before 0.17 kept resources as plain lists, either in `snapshots[]` or in `global`. Very old ones
spelled some keys differently. Nothing here checks its input: `perun.profile.validation` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

OLD_REGIONS = ("global", "snapshots")
"""Keys of a profile that hold resources and models in an older layout."""

_MODEL_KEYS = {"x_interval_start": "x_start", "x_interval_end": "x_end"}
_HEADER_TEXTS = ("cmd", "args", "workload")


def header(old: Mapping[str, Any]) -> dict[str, Any]:
    """The region `header` with `args` for `params`, and with text where YAML made a number of a workload."""
    new = dict(old)
    if "params" in new and "args" not in new:
        new = {("args" if key == "params" else key): value for key, value in new.items()}
    for key in _HEADER_TEXTS:
        if key in new and not isinstance(new[key], str):
            new[key] = "" if new[key] is None else str(new[key])
    return new


def unit(old: Mapping[str, Any]) -> dict[str, Any]:
    """`collector_info` or one of `postprocessors`, with a mapping where old files say `"params": ""`."""
    new = dict(old)
    new["params"] = new.get("params") or {}
    return new


def models(old: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Models with `x_start` and `x_end`; the list itself where no model spells them otherwise."""
    if not any(key in model for model in old for key in _MODEL_KEYS):
        return old
    return [_renamed(model) for model in old]


def _renamed(model: dict[str, Any]) -> dict[str, Any]:
    taken = {_MODEL_KEYS[key] for key in _MODEL_KEYS if _MODEL_KEYS[key] in model}
    return {
        key if _MODEL_KEYS.get(key, key) in taken else _MODEL_KEYS.get(key, key): value
        for key, value in model.items()
    }


def resources(region: str, value: Any) -> Iterator[dict[str, Any]]:
    """The resources of an old region, each with the constants `snapshot` and `time` of its place."""
    if region == "global":
        time = value.get("time", value.get("timestamp"))
        constants = {} if time is None else {"time": time}
        for resource in value.get("resources", ()):
            yield {**constants, **resource}
        return
    for index, snapshot in enumerate(value):
        place: dict[str, Any] = {"snapshot": index}
        if snapshot.get("time") is not None:
            place["time"] = snapshot["time"]
        for resource in snapshot.get("resources", ()):
            yield {**resource, **place}


def region_models(region: str, value: Any) -> list[dict[str, Any]]:
    """The models of an old region."""
    places = [value] if region == "global" else value
    return [model for place in places for model in place.get("models") or ()]
