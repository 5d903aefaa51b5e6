"""`perun fsck`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import Any

import click

from perun.cli.commands.remote import remote_option
from perun.cli.options import json_option
from perun.cli.session import Session
from perun.cli.table import one_line
from perun.core.errors import UsageError
from perun.core.wording import plural
from perun.running.cleaning import fsck as run
from perun.running.cleaning import rebuild as make_anew
from perun.sharing import remotes
from perun.sharing.remotes import open_remote
from perun.store.fsck import FsckFinding
from perun.store.remote.verifying import RemoteFinding

PAINT = {"error": "bold red", "warning": "yellow", "info": "dim", "repaired": "green"}


@click.command()
@click.option("--repair", is_flag=True, help="Remove leftovers, and rebuild what can be rebuilt.")
@click.option(
    "--rebuild", is_flag=True, help="First make all caches anew: what lists and the dashboard are drawn from."
)
@remote_option("Verify this remote instead; the only one if no name is given. All of it is fetched.")
@json_option()
@click.pass_obj
def fsck(session: Session, repair: bool, rebuild: bool, remote_name: str | None, as_json: bool) -> int:
    """Verify everything that is stored.

    Reads every object, index, pending profile, list of changes, journal and hook. Exit code 10 if
    something is damaged and was not repaired. --repair says what it does; it never removes the only copy of
    anything.

    Of a remote, every pack and register is fetched and held against its checksum. --repair puts registers
    that cannot be read aside, and gives up packs that are damaged or missing, after it has copied what is
    whole in them: then `perun push` of whoever has the rest sends it again.
    """
    repo = session.repository
    findings: list[FsckFinding | RemoteFinding] = []
    if remote_name is not None and rebuild:
        raise UsageError(
            "--rebuild makes caches anew, and a remote has none", "leave out --rebuild or --remote"
        )
    with ExitStack() as stack:
        bar = stack.enter_context(session.progress(0, "verifying", enabled=not as_json))
        if rebuild:
            count = make_anew(repo, bar.update)
            if not as_json:
                bar.write(f"made the caches of {plural(count, 'version')} anew")
        found: Iterable[FsckFinding | RemoteFinding] = run(repo, bar.update, repair=repair)
        if remote_name is not None:
            remote = stack.enter_context(open_remote(repo, remote_name or None))
            found = remotes.fsck(repo, remote, bar.update, repair=repair)
        for finding in found:
            findings.append(finding)
            if not as_json and (finding.severity != "info" or finding.done or session.verbosity):
                word = "repaired" if finding.done else finding.severity
                label = session.paint(word, PAINT[word])
                bar.write(f"{label}: {one_line(_described(finding))}")
    errors = sum(finding.severity == "error" and not finding.done for finding in findings)
    if as_json:
        session.say(json.dumps(_data(findings, errors), indent=2))
    else:
        options = "" if remote_name is None else f" --remote {remote_name}".rstrip()
        _summarise(session, findings, errors, repair, options)
    return 10 if errors else 0


def _data(findings: Sequence[FsckFinding | RemoteFinding], errors: int) -> dict[str, Any]:
    rows = [
        {
            "severity": one.severity,
            "path": _path(one),
            "message": one.message,
            "repairable": one.repair is not None,
            "repaired": one.done or None,
        }
        for one in findings
    ]
    return {"schema": "perun.fsck/1", "errors": errors, "findings": rows}


def _summarise(
    session: Session, findings: Sequence[FsckFinding | RemoteFinding], errors: int, repair: bool, options: str
) -> None:
    left = "left" if repair else "found"
    session.say(session.paint(plural(errors, "error"), "bold red") if errors else f"no damage {left}")
    count = sum(one.repair is not None for one in findings)
    if count and not repair:
        session.note(
            f"note: {count} of {len(findings)} findings can be repaired with: perun fsck --repair{options}"
        )


def _path(finding: FsckFinding | RemoteFinding) -> str:
    return str(finding.path) if isinstance(finding, FsckFinding) else finding.key


def _described(finding: FsckFinding | RemoteFinding) -> str:
    path = _path(finding)
    text = finding.message if path in finding.message else f"{path}: {finding.message}"
    return f"{text}: {finding.done}" if finding.done else text
