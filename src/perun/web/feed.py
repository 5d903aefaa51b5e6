"""The changes as a feed (RFC 4287), which a reader of news or a chat tells of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from perun.measurement import present
from perun.pages.document import escape
from perun.porcelain.changes.data import VersionChanges
from perun.porcelain.web.naming import title_of
from perun.porcelain.web.state import State
from perun.profile.amounts import readable_pair

MOST: Final = 50
"""Versions of the feed."""
_STEPS: Final = 20
_CONTROLS: Final = {number: 0xFFFD for number in range(32) if number not in (9, 10, 13)}


def atom(state: State, address: str) -> bytes:
    """The feed. :param address: of the site, with a slash at its end; empty where it is not known."""
    project = state.repo.root.resolve().name
    found = [one for one in reversed(state.found.found) if one.steps][:MOST]
    updated = found[0].version.date if found else _EPOCH
    entries = Counter(one.version.checksum for one in found)
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        f"<title>Performance of {_text(project)}</title>",
        f"<id>urn:perun:{_text(_root_of(state))}</id>",
        f"<updated>{_time(updated)}</updated>",
        *([f'<link href="{_text(address)}"/>'] if address else []),
        *(line for one in found for line in _entry(one, address, alone=entries[one.version.checksum] == 1)),
        "</feed>",
        "",
    ]
    return "\n".join(lines).encode("utf-8")


_EPOCH: Final = "1970-01-01 00:00:00"


def _root_of(state: State) -> str:
    """What stands for the project wherever it is published: its first version."""
    return state.commits.versions[0].checksum if state.commits.versions else "empty"


def _entry(one: VersionChanges, address: str, *, alone: bool) -> Iterator[str]:
    """:param alone: whether the version has no other entry; else the version before tells it apart."""
    version = one.version
    name = version.checksum if alone else f"{version.checksum}:{one.since.checksum}"
    worse = [step for step in one.steps if step.is_degradation]
    kind = f"{len(worse)} worse" if worse else ""
    better = len(one.steps) - len(worse)
    kinds = ", ".join(filter(None, (kind, f"{better} better" if better else "")))
    yield "<entry>"
    yield f"<title>{_text(kinds)}: {_text(version.subject)}</title>"
    yield f"<id>urn:perun:{_text(name)}</id>"
    yield f"<updated>{_time(version.date)}</updated>"
    yield f"<author><name>{_text(version.author)}</name></author>"
    yield f'<link href="{_text(address)}commit.html?c={_text(version.checksum)}"/>'
    steps = one.steps[:_STEPS]
    more = [f"and {len(one.steps) - _STEPS} more"] if len(one.steps) > _STEPS else []
    told = "\n".join(
        f"{title_of(step.series)}: {present.NAMES[step.verdict]}, "
        f"{' -> '.join(readable_pair(*step.values, step.series.unit))}  "
        f"{present.step(step.values, step.ratio, step.low, step.high, step.series.unit)}"
        f"{f'  {step.remark}' if step.remark else ''}"
        for step in steps
    )
    yield f'<content type="text">{_text(chr(10).join([told, *more]))}</content>'
    yield "</entry>"


def _text(text: str) -> str:
    """The text without characters that XML does not have."""
    return escape(text.translate(_CONTROLS)).replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")


def _time(date: str) -> str:
    try:
        return datetime.strptime(date[:19], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).isoformat()
    except ValueError:
        return "1970-01-01T00:00:00+00:00"
