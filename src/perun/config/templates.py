"""Generated configuration files: the three templates of a local one (manual 11.3) and the shared one.

Each file shows all keys that it may hold: those that are set, and the others as commented-out hints.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from perun.config import emit
from perun.config.builds import recognise
from perun.config.candidates import Candidates, find_executables, find_workloads
from perun.config.schema import KEYS, Key, Kind, Scope
from perun.errors import UsageError

_STRATEGIES: Final[list[dict[str, Any]]] = [
    {"method": "hodges_lehmann_ratio"},
    {"method": "average_amount_threshold", "instead_of": "hodges_lehmann_ratio"},
]
_DEVELOPER: Final[dict[str, Any]] = {
    "degradation.strategies": _STRATEGIES,
    "degradation.collect_before_check": True,
    "degradation.log_collect": True,
}
TEMPLATES: Final[Mapping[str, Mapping[str, Any]]] = {
    "user": {
        **_DEVELOPER,
        "collectors": [{"name": "time", "params": {"warmup": 3, "repeat": 10}}],
        "profiles.register_after_run": True,
        "format.output_profile_template": "%collector%-of-%cmd%-%workload%-%date%",
    },
    "developer": _DEVELOPER,
    "master": {"degradation.strategies": _STRATEGIES},
}
"""The keys that each template sets beside `vcs` (manual 11.3, where `master` sets none).

`user` and `developer` also set `execute.pre_run` to what builds the project; `user` looks for cmds and
workloads.
"""

_LOCAL_KEYS: Final = (
    "vcs.type",
    "vcs.url",
    "vcs.main_branch",
    "store.url",
    "cmds",
    "args",
    "workloads",
    "collectors",
    "postprocessors",
    "execute.pre_run",
    "execute.timeout",
    "generators.workload",
    "profiles.register_after_run",
    "remotes",
    "format.status",
    "format.shortlog",
    "format.output_profile_template",
    "format.sort_profiles_by",
    "degradation.collect_before_check",
    "degradation.log_collect",
    "degradation.apply",
    "degradation.strategies",
)
_GENERATOR_EXAMPLE: Final = [
    {"id": "gen", "type": "integer", "min_range": 10, "max_range": 100, "step": 10},
]
_LEGEND: Final = (
    "Lines that begin with ## explain. Lines that begin with a single # are hints: remove the `# ` of a "
    "key, and of its section, to set it. Key by key, what is not set here is looked up in the "
    "configurations above this one."
)


def render(
    template: str, project_dir: Path, vcs_type: str, vcs_url: str | Path, store_url: str = ""
) -> str:
    """The text of a new `local.yml`.

    :param template: `user`, `developer` or `master`.
    :param project_dir: absolute folder that holds `.perun`; `user` looks there for commands and workloads.
    :param vcs_url: folder of the wrapped repository, absolute or as seen from the project; written relative
        to `.perun` if one of the two folders holds the other.
    :param store_url: the database that holds the store; empty for files.
    :raises UsageError: if there is no such template.
    """
    if template not in TEMPLATES:
        known = ", ".join(TEMPLATES)
        raise UsageError(f"there is no configuration template {template!r}", f"the templates are {known}")
    active: dict[str, Any] = {"vcs.type": vcs_type, "vcs.url": relative_url(project_dir, vcs_url)}
    if store_url:
        active["store.url"] = store_url
    active.update(TEMPLATES[template])
    notes: dict[str, str] = {}
    if template == "user":
        _add_candidates(active, notes, "cmds", find_executables(project_dir))
        _add_candidates(active, notes, "workloads", find_workloads(project_dir))
    build, builds = recognise(project_dir), template != "master"
    hints: dict[str, Any] = {"generators.workload": _GENERATOR_EXAMPLE}
    if build is not None:
        notes["execute.pre_run"] = f"This project is built by {build.system} ({build.file})."
        (active if builds else hints)["execute.pre_run"] = list(build.commands)
    elif builds:
        notes["execute.pre_run"] = "How this project is built was not recognised, so nothing is run."
    title = f"Local configuration of Perun (template {template})."
    return _document(title, _LOCAL_KEYS, active, notes, hints)


def default_shared() -> str:
    """The text of a new `shared.yml`, with the built-in values."""
    rows = [key for key in KEYS.values() if key.scope is not Scope.LOCAL and key.kind is not Kind.IGNORED]
    keys = [key.name for key in rows]
    active = {name: KEYS[name].default for name in keys if KEYS[name].example is None}
    hints = {"generators.workload": _GENERATOR_EXAMPLE}
    return _document("Configuration that all instances of Perun on this host share.", keys, active, {}, hints)


def relative_url(project_dir: Path, vcs_url: str | Path) -> str:
    """The value of `vcs.url`: relative to the `.perun` folder of the project if that is natural."""
    project, url = os.path.normpath(project_dir), os.path.normpath(os.path.join(project_dir, vcs_url))
    if os.path.commonpath((project, url)) in (project, url):
        return os.path.relpath(url, os.path.join(project, ".perun"))
    return url


def _add_candidates(active: dict[str, Any], notes: dict[str, str], key: str, found: Candidates) -> None:
    if found.names:
        active[key] = found.names
    if found.left_out:
        notes[key] = f"{found.left_out} more were found and left out."
    elif not found.names:
        notes[key] = f"None were found in folders named {', '.join(found.folders)}."


def _document(
    title: str,
    keys: Iterable[str],
    active: Mapping[str, Any],
    notes: Mapping[str, str],
    hints: Mapping[str, Any],
) -> str:
    lines = [*_comment(title), *_comment(_LEGEND)]
    section = ""
    names = list(keys)
    for name in names:
        top, _, rest = name.partition(".")
        is_set = not rest or any(one.startswith(top + ".") for one in active)
        if not rest or top != section:
            lines.append("")
        if rest and top != section:
            lines.append(f"{top}:" if is_set else f"# {top}:")
        section = top if rest else ""
        indent = 2 if rest else 0
        lines += _comment(KEYS[name].help + (f" {notes[name]}" if name in notes else ""), indent)
        lines += _key_lines(KEYS[name], rest or name, active, hints, indent)
    return "\n".join(lines) + "\n"


def _key_lines(
    key: Key, last: str, active: Mapping[str, Any], hints: Mapping[str, Any], indent: int
) -> list[str]:
    if key.name in active:
        return emit.entry(last, active[key.name], indent)
    value = hints.get(key.name, key.default if key.example is None else key.example)
    return [f"# {line}" for line in emit.entry(last.strip("<>"), value, indent)]


def _comment(text: str, indent: int = 0) -> list[str]:
    lines = textwrap.wrap(text, 98 - indent, break_long_words=False, break_on_hyphens=False)
    return [" " * indent + "## " + line for line in lines]
