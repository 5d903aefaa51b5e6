"""Finds plugins by family and name, and loads only the one that is asked for.

A plugin is built in (a module of `perun/<family>/`), is in a folder that the caller trusts
(`<folder>/<family>/<name>.py` or a package there), or is installed with a distribution that declares an
entry point of the family's group. In this order: what is built in cannot be shadowed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from perun.core.errors import PluginError, Terminated
from perun.plugin.loading import FAMILIES, breach, short_string

GROUPS: Mapping[str, str] = {
    "collect": "perun.collectors",
    "postprocess": "perun.postprocessors",
    "view": "perun.views",
    "check": "perun.checks",
    "workload": "perun.workloads",
    "vcs": "perun.vcs",
    "harness": "perun.harnesses",
    "importer": "perun.importers",
    "exporter": "perun.exporters",
}
"""The group of entry points of each family."""

_COMMANDS = ("collect", "postprocess", "view", "importer", "exporter")
"""Families whose names are commands, which have dashes; elsewhere they are values, with underscores."""

_PERUN = Path(__file__).parents[1]


class Source(NamedTuple):
    """Where a plugin comes from: `kind` is `built-in`, `folder` or `distribution`; `where` names it."""

    kind: str
    where: str

    def __str__(self) -> str:
        return f"{self.kind}, {self.where}"


class PluginCandidate(NamedTuple):
    """A plugin that was found but not loaded: `name` as the manual spells it, `stem` as Python does."""

    name: str
    stem: str
    source: Source
    load: Callable[[], object]


Level = Mapping[str, PluginCandidate]


class Registry:
    """The plugins of all families.

    :param plugin_dirs: folders of plugins beside those built in and installed; the caller has made sure
        that the user trusts them, for loading a plugin runs it.
    """

    def __init__(self, plugin_dirs: Sequence[Path] = ()) -> None:
        self._dirs = tuple(plugin_dirs)
        self._levels: dict[tuple[str, int], Level] = {}
        self._plugins: dict[tuple[str, str], Any] = {}

    def names(self, family: str) -> list[str]:
        """The names of all plugins of the family, sorted; a broken plugin is among them."""
        return sorted({candidate.name for level in self._search(family) for candidate in level.values()})

    def get(self, family: str, name: str) -> Any:
        """The plugin of that name, an instance of the family's protocol; a check also by its short string.

        A version control system is no instance: its class, or whatever takes `(root, environ)` and
        returns a :class:`~perun.plugin.api.Vcs`.

        :raises PluginError: if there is no such plugin, it cannot be loaded, or it breaks its contract.
        """
        found = self._find(family, name)
        key = (family, found.stem)
        if key not in self._plugins:
            self._plugins[key] = _load(family, found)
        return self._plugins[key]

    def forget(self) -> None:
        """Look for plugins anew."""
        self._levels.clear()

    def help(self, family: str, name: str) -> str:
        """The plugin's one line of help.

        :raises PluginError: as :meth:`get`.
        """
        plugin = self.get(family, name)
        return str(plugin.help if hasattr(plugin, "help") else (plugin.__doc__ or "").partition("\n")[0])

    def source(self, family: str, name: str) -> Source:
        """Where the plugin comes from; it is not loaded.

        :raises PluginError: if there is no such plugin.
        """
        return self._find(family, name).source

    def shadowed(self, family: str) -> list[str]:
        """One message for each plugin that another one of the same name hides, for a warning."""
        seen: dict[str, PluginCandidate] = {}
        messages = []
        for candidate in self._all_candidates(family):
            first = seen.setdefault(_key(family, candidate.stem), candidate)
            if first is not candidate and candidate.source.kind != "built-in":
                messages.append(
                    f"the {FAMILIES[family]} {candidate.name!r} ({candidate.source}) is not used: "
                    f"{first.source.kind} has one of that name ({first.source.where})"
                )
        return messages

    def _find(self, family: str, name: str) -> PluginCandidate:
        for level in self._search(family):
            found = level.get(_key(family, name)) or (_by_short(level, name) if family == "check" else None)
            if found is not None:
                return found
        known = self.names(family)
        from perun.plugin.params import nearest

        hint = nearest(name, known)
        listing = "" if hint.startswith("known") else "; known are: " + ", ".join(known)
        raise PluginError(f"there is no {FAMILIES[family]} {name!r}", hint + listing)

    def _search(self, family: str) -> Iterator[Level]:
        # Lazily: looking through the installed distributions takes longer than all the rest.
        for number, candidates in enumerate((_built_in, self._in_folders, _installed)):
            if (family, number) not in self._levels:
                self._levels[family, number] = _first_of_each(family, candidates(family))
            yield self._levels[family, number]

    def _all_candidates(self, family: str) -> Iterator[PluginCandidate]:
        yield from _built_in(family)
        yield from self._in_folders(family)
        yield from _installed(family)

    def _in_folders(self, family: str) -> Iterator[PluginCandidate]:
        for folder in self._dirs:
            for stem, file in _modules(folder / family):
                yield _of_file(family, stem, file)


def _key(family: str, name: str) -> str:
    key = name.replace("-", "_")
    return key.removesuffix("_generator") if family == "workload" else key


def _spelled(family: str, stem: str) -> str:
    key = _key(family, stem)
    return key.replace("_", "-") if family in _COMMANDS else key


def _first_of_each(family: str, candidates: Iterator[PluginCandidate]) -> Level:
    level: dict[str, PluginCandidate] = {}
    for candidate in candidates:
        level.setdefault(_key(family, candidate.stem), candidate)
    return level


def _by_short(level: Level, name: str) -> PluginCandidate | None:
    found = [candidate for candidate in level.values() if short_string(candidate.stem) == name.upper()]
    if len(found) > 1:
        names = ", ".join(sorted(candidate.name for candidate in found))
        raise PluginError(f"{name!r} is short for several checks: {names}", "write the whole name")
    return found[0] if found else None


def _built_in(family: str) -> Iterator[PluginCandidate]:
    for stem, _ in _modules(_PERUN / family):
        if (family, stem) != ("workload", "generator"):  # the documented home of the base, no generator
            module = f"perun.{family}.{stem}"
            yield PluginCandidate(_spelled(family, stem), stem, Source("built-in", module), _importer(module))


def _of_file(family: str, stem: str, file: Path) -> PluginCandidate:
    def load() -> ModuleType:
        from perun.plugin.loading import load_file

        return load_file(f"perun.{family}.{stem}", file)

    return PluginCandidate(_spelled(family, stem), stem, Source("folder", str(file)), load)


def _installed(family: str) -> Iterator[PluginCandidate]:
    from importlib.metadata import entry_points

    for point in sorted(entry_points(group=GROUPS[family]), key=lambda point: (point.name, point.value)):
        made_by = f"{point.dist.name} {point.dist.version}" if point.dist else "unknown"
        source = Source("distribution", f"{made_by}, {point.value}")
        stem = point.name.replace("-", "_")
        yield PluginCandidate(_spelled(family, stem), stem, source, point.load)


def _importer(module: str) -> Callable[[], ModuleType]:
    def load() -> ModuleType:
        from importlib import import_module

        return import_module(module)

    return load


def _modules(folder: Path) -> Iterator[tuple[str, Path]]:
    """The modules in `folder` and the files that define them, sorted; those with `_` in front are private."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        stem = name.removesuffix(".py").replace("-", "_")
        if name.startswith("_") or not stem.isidentifier():
            continue
        if name.endswith(".py"):
            package = folder / name.removesuffix(".py") / "__init__.py"
            if not package.is_file():  # of a package and a module Python takes the package, too
                yield stem, folder / name
        elif (folder / name / "__init__.py").is_file():
            yield stem, folder / name / "__init__.py"


def _load(family: str, found: PluginCandidate) -> Any:
    try:
        return _make(family, found)
    except Terminated:
        raise
    except (Exception, SystemExit) as problem:
        from perun.plugin.loading import describe

        raise PluginError(
            f"the {FAMILIES[family]} {found.name!r} ({found.source}) cannot be used: {describe(problem)}",
            "reinstall Perun" if found.source.kind == "built-in" else "repair the plugin or remove it",
        ) from problem


def _make(family: str, found: PluginCandidate) -> Any:
    loaded = found.load()
    plugin: Any = getattr(loaded, "PLUGIN", loaded)
    if plugin is loaded and not isinstance(plugin, type):
        from perun.plugin.legacy import adapt

        return adapt(family, found.stem, loaded)
    reason = breach(family, plugin)
    if reason:
        raise PluginError(reason)
    if family == "vcs":
        return plugin
    if _key(family, plugin.name) != _key(family, found.stem):
        raise PluginError(f"{plugin.__name__}.name is {plugin.name!r}, but it is found as {found.name!r}")
    return plugin()
