"""`perun fsck`."""

from __future__ import annotations

import json

import click

from perun.cli.session import Session

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
                bar.write(f"{label}: {finding.path}: {finding.message}")
    errors = sum(finding.severity == "error" for finding in findings)
    if as_json:
        rows = [{"severity": f.severity, "path": str(f.path), "message": f.message} for f in findings]
        session.say(json.dumps({"schema": "perun.fsck/1", "errors": errors, "findings": rows}, indent=2))
    else:
        session.say(session.paint(f"{errors} errors", "bold red") if errors else "no damage found")
    return 10 if errors else 0
