"""`perun postprocessby`: make a new profile out of one (manual 3.4.1)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from perun.core.errors import JobFailed
from perun.plugin.api import NO_POSTPROCESS_CONTEXT, PostprocessContext
from perun.plugin.loading import errors_of
from perun.plugin.params import to_mapping
from perun.repository import registering
from perun.repository.repository import Repository

if TYPE_CHECKING:
    from perun.profile.factory import Profile

_MEASURED: Final = ("cmd", "args", "workload")
"""Keys of the header that no postprocessor changes."""
_RESULTS: Final = ("resources", "resource_type_map", "models", "postprocessors")
"""Regions that are the postprocessor's own."""


def process(
    repo: Repository,
    profile: Profile,
    name: str,
    params: Any,
    ctx: PostprocessContext = NO_POSTPROCESS_CONTEXT,
) -> Profile:
    """`profile` processed by the postprocessor, which is appended to its `postprocessors`.

    What was measured and how stays what the profile says, whatever the postprocessor returns: without that it
    would be compared with profiles of other commands.
    """
    postprocessor = repo.registry.get("postprocess", name)
    with errors_of(postprocessor, f"the postprocessor {postprocessor.name!r}", JobFailed):
        processed: Profile = postprocessor.process(profile.copy(), params, ctx)
    header = profile.get("header") or {}
    measured = {key: header[key] for key in _MEASURED if key in header}
    processed["header"] = {**header, **(processed.get("header") or {}), **measured}
    for region, value in profile.regions().items():
        if region not in _RESULTS:
            processed.setdefault(region, value)
    done = list(profile.get("postprocessors") or ())
    if len(processed.get("postprocessors") or ()) <= len(done):
        processed["postprocessors"] = [*done, _record(postprocessor.name, params)]
    return processed


def without(profile: Profile, name: str, params: Any, problem: str) -> Profile:
    """`profile` as it is, but for the note that the postprocessor was tried and could do nothing with it.

    It counts as one of the job that asked for the postprocessor, which would end likewise if it ran again.
    """
    record = {**_record(name, params), "problem": problem}
    profile["postprocessors"] = [*(profile.get("postprocessors") or ()), record]
    return profile


def _record(name: str, params: Any) -> dict[str, Any]:
    return {"name": name, "params": to_mapping(params)}


def postprocessby(
    repo: Repository,
    profile: Profile,
    minor: str,
    name: str,
    params: Any,
    template: str | None = None,
    ctx: PostprocessContext = NO_POSTPROCESS_CONTEXT,
) -> Path:
    """Process `profile`, of the version `minor`, and save the result as a pending profile."""
    processed = process(repo, profile, name, params, ctx)
    return registering.save(repo, processed, str(profile.get("origin") or minor), template=template)
