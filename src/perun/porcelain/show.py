"""`perun show`: interpret a profile (manual 3.5.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TextIO

from perun.errors import PluginError
from perun.plugin.api import NO_VIEW_CONTEXT, ViewContext
from perun.plugin.contract import takes_context
from perun.plugin.failing import errors_of
from perun.porcelain import lookup
from perun.porcelain.repository import Repository

if TYPE_CHECKING:
    from perun.profile.factory import Profile


def load_profile(repo: Repository, spec: str, minor: str | None, confirm: lookup.Confirm | None) -> Profile:
    """The profile that `spec` names, looked up as the manual's 3.5.1 says."""
    return lookup.load(repo, lookup.find(repo, spec, minor, confirm))


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
    with errors_of(plugin, f"the view {plugin.name!r}", PluginError):
        plugin.render(profile, params, out, *context)
