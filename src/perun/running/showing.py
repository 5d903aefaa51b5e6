"""`perun show`: interpret a profile (manual 3.5.1)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO

from perun.core.errors import PluginError, ProfileError, UsageError, VersionControlError
from perun.plugin.api import NO_VIEW_CONTEXT, ViewContext
from perun.plugin.loading import errors_of, takes_context
from perun.profile.bounds import is_of_bounds
from perun.profile.untraced import untraced_note
from perun.repository import lookup
from perun.repository.repository import Repository
from perun.running.run.collecting import VersionStatistics

if TYPE_CHECKING:
    from perun.plugin.api import Statistics
    from perun.plugin.registry import Registry
    from perun.plugin.versions import MinorVersion
    from perun.profile.factory import Profile


class ViewChoice(NamedTuple):
    """A view that suits a profile.

    :param arguments: what `perun show PROFILE` is continued with: the view, and its arguments and options.
    :param needs: fields of the resources of which the profile must have one; empty if it needs none.
    """

    arguments: tuple[str, ...]
    needs: tuple[str, ...] = ()


_BOUNDS: Final = ("tableof", "resources", "-h", "uid", "-h", "subtype", "-h", "bound", "-h", "class")
CHOICES: Final[Mapping[str, tuple[ViewChoice, ...]]] = {
    "time": (
        ViewChoice(("bars", "mean", "--per", "workload", "--by", "subtype", "--grouped", "--of", "amount",
                "--terminal"), ("workload",)),
        ViewChoice(("bars", "mean", "--per", "subtype", "--of", "amount", "--terminal"), ("subtype",)),
    ),
    "memory": (ViewChoice(("memory",)),),
    "trace": (
        ViewChoice(("flamegraph",), ("timestamp", "trace")),
        ViewChoice(("bars", "sum", "--per", "uid", "--of", "amount", "--terminal"), ("uid",)),
    ),
    "instructions": (ViewChoice(("flamegraph",), ("trace",)),),
    "sample": (ViewChoice(("flamegraph",), ("trace",)),),
    "complexity": (
        ViewChoice(("scatter",), ("structure-unit-size",)),
        ViewChoice(("flamegraph",), ("timestamp",)),
    ),
    "bounds": (
        ViewChoice((*_BOUNDS, "-h", "reason"), ("reason",)),
        ViewChoice(_BOUNDS),
    ),
    "island": (ViewChoice(("timeline", "--format", "summary")),),
    "regex": (ViewChoice(("scatter",), ("structure-unit-size",)),),
    "": (ViewChoice(("flamegraph",), ("trace",)),),
}  # fmt: skip
"""The views of a collector, the best one first; those of any other by the empty name."""
OTHERWISE: Final = ViewChoice(("tableof", "resources", "--limit", "50"))
"""What shows a profile of any other collector."""
_WITHOUT_PAGES: Final = "--terminal"
_CHARTS: Final = ("bars", "boxplot", "flow", "histogram", "scatter")
"""Views that draw in the terminal, too."""


def load_profile(repo: Repository, spec: str, minor: str | None, confirm: lookup.Confirm | None) -> Profile:
    """The profile that `spec` names, looked up as the manual's 3.5.1 says."""
    return lookup.load(repo, lookup.find(repo, spec, minor, confirm))


def statistics_of(
    repo: Repository, spec: str, minor: str | None, confirm: lookup.Confirm | None
) -> Statistics | None:
    """What is kept of the version of a profile; None where the profile does not tell its version."""
    version = _version_of(repo, spec, minor, confirm)
    return VersionStatistics(repo, version) if version else None


def _version_of(
    repo: Repository, spec: str, minor: str | None, confirm: lookup.Confirm | None
) -> MinorVersion | None:
    found = lookup.find(repo, spec, minor, confirm)
    version = found.minor_version or lookup.head(repo, found.info).get("origin")
    if not isinstance(version, str) or not version:
        return None
    try:
        return repo.vcs.get_minor_version_info(version)
    except VersionControlError:
        return None  # the profile is from another repository


class VersionSources:
    """The sources of the version of a profile, read where a view asks for the first one.

    :param repository: opens it then; there may be none.
    """

    def __init__(
        self,
        repository: Callable[[], Repository],
        spec: str,
        minor: str | None,
        confirm: lookup.Confirm | None,
    ) -> None:
        self._repository = repository
        self._profile = spec, minor, confirm

    def __call__(self, path: str) -> str | None:
        """The text of a file that the profile names; None where no file, or more than one, may be meant.

        Programs that were measured in a folder of the repository, or in a copy of it, name files relative to
        that, or by their whole path there: so it is the only file whose path ends like this one.
        """
        repo, version, files = self._version
        if not version:
            return None
        name = os.path.normpath(path)
        if os.path.isabs(name):
            if os.path.commonpath([name, repo.root]) != str(repo.root):
                return None
            fitting = sorted((one for one in files if f"/{name}".endswith(f"/{one}")), key=len)[-1:]
        else:
            fitting = [name] if name in files else [one for one in files if one.endswith(f"/{name}")]
        text = repo.vcs.source(version.checksum, fitting[0]) if len(fitting) == 1 else None
        return None if text is None else text.decode("utf-8", "replace")

    @cached_property
    def _version(self) -> tuple[Repository, MinorVersion | None, frozenset[str]]:
        repo = self._repository()
        version = _version_of(repo, *self._profile)
        return repo, version, frozenset(repo.vcs.files(version.checksum) if version else ())


def show(
    repo: Repository,
    profile: Profile,
    view: str,
    params: Any,
    out: TextIO,
    ctx: ViewContext = NO_VIEW_CONTEXT,
) -> None:
    """Interpret `profile` with the view, into `out` or the file that `params` name."""
    plugin = repo.registry.get("view", view)
    context = (ctx,) if takes_context(plugin) else ()
    if lacking := untraced_note(profile):
        ctx.note(lacking)
    try:
        with errors_of(plugin, f"the view {plugin.name!r}", PluginError):
            plugin.render(profile, params, out, *context)
    except (ProfileError, UsageError) as problem:
        if not is_of_bounds(profile):
            raise
        hint = "bounds are formulas, which have no amounts: perun show <profile> lists them as a table"
        raise type(problem)(problem.message, "; ".join(filter(None, (problem.hint, hint)))) from None


def chosen_view(profile: Profile, registry: Registry, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The view that suits the collector of the profile, with its arguments and options.

    A chart goes to the terminal where this machine lacks what pages with charts need.
    """
    fields = {field for group in profile.groups() for field in (*group.constants, *group.columns)}
    choices = CHOICES.get(profile.configuration.collector, CHOICES[""])
    fitting = (one for one in choices if not one.needs or not fields.isdisjoint(one.needs))
    view, *options = next(fitting, OTHERWISE).arguments
    readiness = getattr(registry.get("view", view), "readiness", None)
    if view in _CHARTS and _WITHOUT_PAGES not in options and readiness and any(readiness(environ)):
        options.append(_WITHOUT_PAGES)
    return (view, *options)
