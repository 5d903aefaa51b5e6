"""Rules of installed packages: entry points of the group `perun.fuzz_rules`, one for each type of files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

from perun.errors import PluginError, Terminated
from perun.plugin.api import FuzzRule
from perun.plugin.failing import failure

GROUP: Final = "perun.fuzz_rules"


def installed(seed: bytes, path: Path) -> list[tuple[str, FuzzRule]]:
    """The rules of all packages for a file, each with the name of its entry point.

    :raises PluginError: if a package cannot be loaded, or breaks its contract.
    """
    from importlib.metadata import entry_points

    return [
        (point.name, rule)
        for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))
        for rule in _rules(point.name, point.load, seed, path)
    ]


def _rules(name: str, load: Callable[[], Any], seed: bytes, path: Path) -> list[FuzzRule]:
    on = f"the fuzzing rules {name!r}"
    try:
        loaded = load()
        plugin = loaded() if isinstance(loaded, type) else loaded
        rules = list(plugin.rules()) if plugin.accepts(seed, path) else []
    except Terminated:
        raise
    except (Exception, SystemExit) as problem:
        raise failure(on, PluginError, problem) from problem
    for rule in rules:
        if not isinstance(rule, FuzzRule) or not callable(rule.apply) or not rule.label:
            raise PluginError(
                f"{on} are not as they should be: {rule!r} is no perun.plugin.api.FuzzRule",
                "repair the plugin or remove it",
            )
    return [rule._replace(apply=_guarded(on, rule)) for rule in rules]


def _guarded(on: str, rule: FuzzRule) -> Callable[[bytes, Random, Sequence[bytes]], bytes | None]:
    """The rule's function, whose exceptions and results of other types are errors of the plugin."""

    def apply(data: bytes, random: Random, corpus: Sequence[bytes]) -> bytes | None:
        try:
            made = rule.apply(data, random, corpus)
        except Exception as problem:
            raise failure(f"{on}: {rule.label}", PluginError, problem) from problem
        if made is not None and not isinstance(made, bytes):
            raise PluginError(
                f"{on}: {rule.label} returned {type(made).__name__} instead of bytes", "repair the plugin"
            )
        return made

    return apply
