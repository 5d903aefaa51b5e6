"""`perun fsck`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from perun.cli.session import Session
from perun.cli.table import one_line

if TYPE_CHECKING:
    from perun.store.fsck import Finding

PAINT = {"error": "bold red", "warning": "yellow", "info": "dim"}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
@click.pass_obj
def fsck(session: Session, as_json: bool) -> int:
    """Verify everything that is stored.

    Reads every object, index, pending profile and list of changes. Exit code 10 where something is damaged.
    """
    from perun.porcelain.fsck import fsck as run

    repo = session.repository
    findings = []
    with session.progress(0, "verifying", enabled=not as_json) as bar:
        for finding in run(repo, bar.update):
            findings.append(finding)
            if not as_json and (finding.severity != "info" or session.verbosity):
                label = session.paint(finding.severity, PAINT[finding.severity])
                bar.write(f"{label}: {one_line(_told(finding))}")
    errors = sum(finding.severity == "error" for finding in findings)
    if as_json:
        rows = [{"severity": f.severity, "path": str(f.path), "message": f.message} for f in findings]
        session.say(json.dumps({"schema": "perun.fsck/1", "errors": errors, "findings": rows}, indent=2))
    else:
        count = f"{errors} error{'s' * (errors > 1)}"
        session.say(session.paint(count, "bold red") if errors else "no damage found")
    return 10 if errors else 0


def _told(finding: Finding) -> str:
    path = str(finding.path)
    return finding.message if path in finding.message else f"{path}: {finding.message}"
