"""`perun fsck`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from perun.cli.session import Session
from perun.cli.table import one_line
from perun.porcelain.fsck import fsck as run
from perun.porcelain.fsck import rebuild as make_anew
from perun.wording import plural

if TYPE_CHECKING:
    from perun.store.fsck import Finding

PAINT = {"error": "bold red", "warning": "yellow", "info": "dim", "repaired": "green"}


@click.command()
@click.option("--repair", is_flag=True, help="Remove leftovers, and rebuild what can be rebuilt.")
@click.option(
    "--rebuild", is_flag=True, help="First make all caches anew: what lists and the dashboard are drawn from."
)
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
@click.pass_obj
def fsck(session: Session, repair: bool, rebuild: bool, as_json: bool) -> int:
    """Verify everything that is stored.

    Reads every object, index, pending profile, list of changes, journal and hook. Exit code 10 if
    something is damaged and was not repaired. --repair says what it does; it never removes the only copy of
    anything.
    """
    repo = session.repository
    findings = []
    with session.progress(0, "verifying", enabled=not as_json) as bar:
        if rebuild:
            count = make_anew(repo, bar.update)
            if not as_json:
                bar.write(f"made the caches of {plural(count, 'version')} anew")
        for finding in run(repo, bar.update, repair=repair):
            findings.append(finding)
            if not as_json and (finding.severity != "info" or finding.done or session.verbosity):
                word = "repaired" if finding.done else finding.severity
                label = session.paint(word, PAINT[word])
                bar.write(f"{label}: {one_line(_described(finding))}")
    errors = sum(finding.severity == "error" and not finding.done for finding in findings)
    if as_json:
        session.say(json.dumps(_data(findings, errors), indent=2))
    else:
        _summarise(session, findings, errors, repair)
    return 10 if errors else 0


def _data(findings: Sequence[Finding], errors: int) -> dict[str, Any]:
    rows = [
        {
            "severity": one.severity,
            "path": str(one.path),
            "message": one.message,
            "repairable": one.repair is not None,
            "repaired": one.done or None,
        }
        for one in findings
    ]
    return {"schema": "perun.fsck/1", "errors": errors, "findings": rows}


def _summarise(session: Session, findings: Sequence[Finding], errors: int, repair: bool) -> None:
    left = "left" if repair else "found"
    session.say(session.paint(plural(errors, "error"), "bold red") if errors else f"no damage {left}")
    count = sum(one.repair is not None for one in findings)
    if count and not repair:
        session.note(f"note: {count} of {len(findings)} findings can be repaired with: perun fsck --repair")


def _described(finding: Finding) -> str:
    path = str(finding.path)
    text = finding.message if path in finding.message else f"{path}: {finding.message}"
    return f"{text}: {finding.done}" if finding.done else text
