"""A profile as a page of `perun show`."""

from __future__ import annotations

import io
import tempfile
from dataclasses import replace
from pathlib import Path

from perun.core.errors import ProfileNotFound
from perun.repository.lookup import identity
from perun.repository.repository import Repository
from perun.running.showing import show
from perun.web.data.versions import PAGES


def page(repo: Repository, version: str, profile: str, view: str) -> str:
    """The page that a view makes of a registered profile.

    :param version: its checksum. :param profile: the id of the profile, as of `commits/K`.
    :raises ProfileNotFound: if there is no such profile, or the view makes no page of it.
    :raises PerunError: if it cannot be read.
    """
    infos = [entry.info() for entry in repo.store.indexes.read(version)]
    found = next((info for info in infos if identity(info) == profile), None)
    if found is None:
        raise ProfileNotFound(f"{version[:10]} has no profile {profile[:20]!r}", "see its page")
    if view not in PAGES.get(found.configuration.collector, ()):
        raise ProfileNotFound(
            f"there is no page {view[:40]!r} of profiles of {found.configuration.collector}",
            "perun show has all views",
        )
    loaded = repo.store.objects.get(found.checksum)
    params = repo.registry.get("view", view).Params()
    with tempfile.TemporaryDirectory(prefix="perun-web-") as folder:
        path = Path(folder) / "page.html"
        show(repo, loaded, view, replace(params, filename=str(path)), io.StringIO())
        return path.read_text("utf-8")
