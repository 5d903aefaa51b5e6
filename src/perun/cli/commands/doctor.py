"""`perun doctor`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import click

from perun.cli.answers.noise import noise_data, noise_lines
from perun.cli.session import Session
from perun.cli.table import clean
from perun.errors import NotPerunRepository, PerunError
from perun.plugin.registry import Registry
from perun.porcelain import noise as noise_verb
from perun.porcelain.doctor import Diagnosis, Finding
from perun.porcelain.doctor import diagnose as run


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Show what can be measured on this machine, and how reliably.

    Looks at this machine, the project and the plugins, and says what to do about what is not as it should be.
    Nothing is measured, but by `perun doctor noise`.
    """
    if ctx.invoked_subcommand is not None:
        return
    session: Session = ctx.obj
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


@doctor.command()
@click.option(
    "--budget",
    type=click.FloatRange(min=0, min_open=True),
    default=noise_verb.BUDGET,
    show_default=True,
    metavar="SECONDS",
    help="Measure so long, but 10 pairs at least.",
)
@click.option(
    "--length",
    type=float,
    default=noise_verb.LENGTH,
    show_default=True,
    metavar="SECONDS",
    help="How long one run of the built-in program takes: about as long as your commands.",
)
@click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
@click.pass_context
def noise(ctx: click.Context, budget: float, length: float, as_json: bool) -> None:
    """Measure the noise of this machine, and say which changes it hides.

    A small program runs again and again, in pairs. Nothing changes between its runs, so all that differs is
    noise. From that follows how many pairs, and seconds, `perun compare` needs to see changes of 1 % to 25 %.
    """
    session: Session = ctx.obj
    as_json = as_json or bool(ctx.parent and ctx.parent.params["as_json"])
    with session.progress(0, "noise") as shown:
        found = noise_verb.measure(session.environ, budget, length, shown.update)
    session.say(json.dumps(noise_data(found), indent=2) if as_json else "\n".join(noise_lines(found)))


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
