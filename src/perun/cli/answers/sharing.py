"""What `perun remote`, `push`, `pull`, `fetch` and `gc` answer, as text or JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from perun.cli.answers.data import write_json
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.porcelain.gc import Collected
from perun.porcelain.sharing.listing import HeldVersion
from perun.porcelain.sharing.remotes import NamedRemote
from perun.porcelain.sharing.transfer import Transferred
from perun.profile.amounts import readable
from perun.wording import plural

_SHOWN = 10
"""Profiles that were refused which are named."""


def remotes(session: Session, found: Sequence[NamedRemote], *, as_json: bool) -> None:
    """The remotes of the configuration."""
    if as_json:
        rows = [{"name": one.name, "url": one.shown} for one in found]
        write_json(session.out, {"schema": "perun.remotes/1", "remotes": rows})
        return
    width = max((len(one.name) for one in found), default=0)
    for one in found:
        session.say(f"{one.name:{width}}  {one_line(one.shown)}")
    if not found:
        session.say("there is no remote; add one with: perun remote add NAME URL")


def transferred(
    session: Session,
    done: Transferred,
    url: str,
    verb: Literal["push", "pull"],
    *,
    some: bool = False,
    dry_run: bool,
    as_json: bool,
) -> int:
    """What a transfer did, or would do; the exit code: 6 if profiles were refused.

    :param some: it was about some versions only.
    """
    code = 6 if done.refused else 0
    if as_json:
        write_json(
            session.out,
            {
                "schema": f"perun.{verb}/1",
                "remote": url,
                "dry_run": dry_run,
                "profiles": [entry._asdict() for entry in done.entries],
                "known": done.known,
                "removed": [entry._asdict() for entry in done.removed],
                "refused": done.refused,
                "bytes": done.sent,
                "seconds": round(done.seconds, 3),
            },
        )
        return code
    word = {"push": "sent", "pull": "fetched"}[verb]
    sign = {"push": "to", "pull": "from"}[verb]
    count = plural(len(done.entries), "profile")
    if dry_run:
        session.say(f"would have {word} {count} {sign} {url}")
    elif done.entries:
        rate = readable(done.sent / max(done.seconds, 1e-3), "B")
        session.say(f"{word} {count} {sign} {url}: {readable(done.sent, 'B')}, {rate}/s")
    elif not (done.refused or done.known or done.removed):
        of = " of these versions" if some else ""
        session.say(
            f"nothing to push: no profile{of} is registered; register some with: perun add"
            if verb == "push"
            else f"nothing to pull: {url} has no profile{of}"
        )
    elif not done.refused:
        where = "there" if verb == "push" else "here"
        session.say(f"nothing to {verb}: {plural(done.known, 'profile')} of {url} {where} already")
    if done.removed:
        what = plural(len(done.removed), "profile")
        session.note(f"note: {what} that were removed from {url} are not sent; perun push --again sends them")
    for why in done.refused[:_SHOWN]:
        session.note(f"warning: {one_line(why)}")
    if len(done.refused) > _SHOWN:
        session.note(f"warning: and {len(done.refused) - _SHOWN} more; see perun fsck")
    return code


def held(session: Session, found: Sequence[HeldVersion], url: str, *, as_json: bool) -> None:
    """Which profiles of which versions a remote has."""
    if as_json:
        write_json(
            session.out,
            {"schema": "perun.fetch/1", "remote": url, "versions": [_held(one) for one in found]},
        )
        return
    for one in found:
        session.say(_held_line(session, one))
    there = sum(len(one.there) for one in found)
    versions = plural(sum(bool(one.there) for one in found), "version")
    session.say(f"{url} has {plural(there, 'profile')} of {versions}" if there else f"{url} has no profile")
    if not_here := sum(one.not_here for one in found):
        session.say(f"{plural(not_here, 'profile')} of them not here: perun pull fetches them")
    if not_there := sum(one.not_there for one in found):
        session.say(f"{plural(not_there, 'profile')} of here not there: perun push sends them")
    if any(one.info is None for one in found):
        session.note("note: versions without a date are not in this clone; git fetch may get them")


def _held(one: HeldVersion) -> dict[str, Any]:
    return {
        "version": one.version,
        "date": one.info and one.info.date,
        "subject": one.info and one.info.subject,
        "profiles": [entry._asdict() for entry in one.there],
        "not_here": one.not_here,
        "not_there": one.not_there,
    }


def _held_line(session: Session, one: HeldVersion) -> str:
    date = one.info.date[:10] if one.info else " " * 10
    parts = [plural(len(one.there), "profile")]
    if one.not_here:
        parts.append(f"{one.not_here} not here")
    if one.not_there:
        parts.append(f"{one.not_there} of here not there")
    subject = f"  {one_line(one.info.subject)}" if one.info else ""
    return f"{session.paint(one.version[:10], 'yellow')}  {date}  {', '.join(parts)}{subject}"


def collected(session: Session, done: Collected, url: str | None, *, dry_run: bool, as_json: bool) -> None:
    """What `perun gc` removed, here or at a remote, or would remove."""
    if as_json:
        write_json(
            session.out,
            {
                "schema": "perun.gc/1",
                "remote": url,
                "dry_run": dry_run,
                "profiles": [entry._asdict() for entry in done.entries],
                "deleted": done.deleted,
                "bytes": done.freed,
                "waiting": done.waiting,
                "moved": done.moved,
                "unknown": len(done.unknown),
            },
        )
        return
    would = "would have " if dry_run else ""
    by_version = Counter(entry.minor for entry in done.entries)
    if dry_run:
        for version, many in list(by_version.items())[:_SHOWN]:
            session.say(f"{session.paint(version[:10], 'yellow')}  {plural(many, 'profile')}")
        if len(by_version) > _SHOWN:
            session.say(f"and {plural(len(by_version) - _SHOWN, 'version')} more; --json names every profile")
    where = f" from {url}" if url else ""
    if done.entries:
        count = plural(len(done.entries), "profile")
        session.say(f"{would}removed {count} of {plural(len(by_version), 'version')}{where}")
    what = "piece" if url else "object"
    if done.deleted:
        count = plural(len(done.deleted), what)
        session.say(f"{would}deleted {count}: {readable(done.freed - done.moved, 'B')} freed")
    if done.waiting:
        session.say(f"{readable(done.waiting, 'B')} more are deleted by perun gc --remote after the grace")
    if not (done.entries or done.deleted or done.waiting):
        session.say(f"nothing to remove{where}")
    if done.unknown:
        versions = plural(len({entry.minor for entry in done.unknown}), "version")
        count = f"{plural(len(done.unknown), 'profile')} of {versions}"
        lacks = done.lacks or "it does not have these versions; git fetch --tags may get them"
        if set(done.unknown) <= set(done.entries):
            session.note(f"note: this clone cannot know whether {count} of these are to be kept: {lacks}")
        else:
            session.note(
                f"note: {count} stay, as this clone cannot know whether they are to be kept: {lacks}; "
                "--unknown removes them, too"
            )
    if done.entries and not url:
        lost = "would be" if dry_run else "are"
        session.note(
            f"note: removed profiles {lost} lost, unless a remote has them: perun pull fetches these"
        )
