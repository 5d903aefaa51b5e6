"""`perun doctor`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import click

from perun.cli.session import Session
from perun.cli.table import clean
from perun.errors import NotPerunRepository, PerunError
from perun.plugin.registry import Registry
from perun.porcelain.doctor import Diagnosis, Finding
from perun.porcelain.doctor import diagnose as run


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
@click.pass_obj
def doctor(session: Session, as_json: bool) -> None:
    """Show what can be measured on this machine, and how reliably.

    Looks at this machine, the project and the plugins, and says what to do about what is not as it should be.
    Nothing is measured.
    """
    repo, trouble = None, None
    try:
        repo = session.repository
    except NotPerunRepository:
        pass
    except PerunError as problem:
        trouble = problem
    registry = Registry() if repo is None else repo.registry
    found = run(repo, registry, session.environ, trouble)
    if as_json:
        session.say(json.dumps(_data(found), indent=2))
        return
    _Report(session).write(found)


def _data(found: Diagnosis) -> dict[str, Any]:
    return {
        "schema": "perun.doctor/1",
        "versions": dict(found.versions),
        "machine": found.machine or None,
        "conditions": [one._asdict() for one in found.conditions],
        "project": [asdict(one) for one in found.project],
        "collectors": [asdict(one) for one in found.collectors],
        "plugins": [asdict(one) for one in found.plugins],
    }


class _Report:
    """The diagnosis as text: good things a line each, the others with what to do below."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def write(self, found: Diagnosis) -> None:
        """Write it."""
        for name, version in found.versions.items():
            missing = "not found; install it: apt-get install git"
            self._line(bool(version), name, version or missing)
        self._title("this machine" + (f": {found.machine}" if found.machine else ""))
        for condition in found.conditions:
            self._line(False, condition.key, condition.message, condition.advice)
        if not found.conditions:
            self._line(True, "environment", "nothing found that makes times unreliable")
        self._title("this project")
        self._findings(found.project)
        if not found.project:
            self._line(False, "repository", "there is none here", "make one with: perun init")
        self._title("collectors")
        self._findings(found.collectors)
        if found.plugins:
            self._title("plugins that cannot be used, or only in part")
            self._findings(found.plugins)

    def _title(self, text: str) -> None:
        self._session.say("\n" + self._session.paint(clean(text), "bold"))

    def _findings(self, findings: Iterable[Finding]) -> None:
        for one in findings:
            self._line(one.ok, one.name, one.message or "can run here", one.hint)

    def _line(self, ok: bool, name: str, message: str, hint: str = "") -> None:
        paint = self._session.paint
        mark = paint("ok  ", "green") if ok else paint("warn", "yellow")
        first, *more = clean(message).splitlines() or [""]
        self._session.say(f"  {mark}  {clean(name)}: {first}")
        for line in (*more, *clean(hint).splitlines()):
            self._session.say("        " + line)
