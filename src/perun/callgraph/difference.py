"""What changed between two versions of a program, by their call graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from perun.callgraph.graph import CallGraph, Function


class Difference(NamedTuple):
    """The functions that changed, each with what did, and new names to old ones of those that did not."""

    changed: Mapping[str, str]
    renamed: Mapping[str, str]


def difference(new: CallGraph, old: CallGraph, mode: str, inspect_all: bool = True) -> Difference:
    """The functions that are new, or whose callees or control flow are others than before.

    A renamed function has the callers and callees, and the control flow, of one that is gone. Its name in its
    callers is no change of these.

    :param mode: how control flow is compared: a field of :class:`perun.callgraph.graph.Fingerprints`.
    :param inspect_all: whether it is compared at all.
    """
    renamed = _renamed(new, old, mode)
    changed = {}
    for name, function in new.functions.items():
        before = old.functions.get(renamed.get(name, name))
        what = "it is new" if before is None else _changed(function, before, renamed, mode, inspect_all)
        if what:
            changed[name] = what
    return Difference(changed, renamed)


def _changed(
    function: Function, before: Function, renamed: Mapping[str, str], mode: str, inspect_all: bool
) -> str:
    """What changed of a function; empty if nothing did."""
    if _sites(function, renamed) != before.sites:
        return "its callees changed"
    if inspect_all and _print(function, mode) != _print(before, mode):
        return f"its control flow changed ({mode})"
    return ""


def _renamed(new: CallGraph, old: CallGraph, mode: str) -> dict[str, str]:
    """New names to old ones. Where functions that call each other are renamed, those of one become known when
    those of the other are, so the search goes on until it finds no more."""
    added = [name for name in new.functions if name not in old.functions]
    gone = {name for name in old.functions if name not in new.functions}
    found: dict[str, str] = {}
    while True:
        by_key: dict[object, list[str]] = {}
        for name in gone - set(found.values()):
            by_key.setdefault(_key(old, name, {}, gone, mode), []).append(name)
        open_ = [name for name in added if name not in found]
        wanted: dict[object, list[str]] = {}
        for name in open_:
            wanted.setdefault(_key(new, name, found, set(open_), mode), []).append(name)
        more = {
            names[0]: by_key[key][0]
            for key, names in wanted.items()
            if len(names) == 1 and len(by_key.get(key, ())) == 1
        }
        if not more:
            return found
        found |= more
        gone -= set(more.values())


def _key(
    graph: CallGraph, name: str, renamed: Mapping[str, str], unknown: set[str], mode: str
) -> tuple[object, ...]:
    """What two functions have in common if one is the other renamed; callers and callees whose own names are
    open count only as such."""

    def plain(names: Iterable[str]) -> tuple[str, ...]:
        return tuple("?" if one in unknown else renamed.get(one, one) for one in names)

    function = graph.functions[name]
    return (
        _print(function, mode),
        plain(function.sites),
        tuple(sorted(plain(graph.callers(name)))),
    )


def _sites(function: Function, renamed: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(renamed.get(one, one) for one in function.sites)


def _print(function: Function, mode: str) -> str:
    return str(getattr(function.fingerprints, mode))
