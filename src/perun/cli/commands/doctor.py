"""`perun doctor`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

import click

from perun.cli.answers.data import finite
from perun.cli.options import json_option
from perun.cli.session import Session
from perun.cli.table import clean
from perun.core.errors import NotPerunRepository, PerunError
from perun.measurement.difference import DEFAULTS
from perun.models.two_samples.ratio import POWER
from perun.plugin.registry import Registry
from perun.profile.amounts import readable
from perun.running import doctor as noise_verb
from perun.running.compare.plan import MAX_PAIRS, SECONDS
from perun.running.doctor import ClockNoise, DetectableEffect, Diagnosis, Finding, NoiseReport
from perun.running.doctor import diagnose as run

# What `perun doctor noise` answers: text and JSON.


def noise_data(found: NoiseReport) -> dict[str, Any]:
    """The noise as JSON data (docs/json.md)."""
    return {
        "schema": "perun.noise/1",
        "machine": found.machine or None,
        "conditions": [one._asdict() for one in found.conditions],
        "command": found.command,
        "pairs": found.pairs,
        "disturbed": found.disturbed,
        "pinned": found.pinned,
        "seconds": found.seconds,
        "confidence": DEFAULTS.confidence,
        "power": POWER,
        "clocks": [_clock_data(clock) for clock in found.clocks],
    }


def _clock_data(clock: ClockNoise) -> dict[str, Any]:
    return {
        "name": clock.name,
        "median": clock.median,
        "scatter": clock.scatter,
        "paired": clock.paired,
        "ratio": clock.ratio.estimate,
        "interval": [finite(clock.ratio.low), finite(clock.ratio.high)],
        "p_value": clock.ratio.p_value,
        "halves": clock.halves,
        "smallest": finite(clock.smallest),
        "effects": [one._asdict() for one in clock.effects],
    }


def noise_lines(found: NoiseReport) -> Iterator[str]:
    """The noise as text."""
    if found.machine:
        yield f"this machine: {clean(found.machine)}"
    yield (
        f"{found.pairs} pairs of runs of the same program in {readable(found.seconds, 's')}"
        + (", each pair on one core" if found.pinned else "")
        + (f"; in {found.disturbed} of them something else was in the way" if found.disturbed else "")
    )
    yield ""
    yield f"{'':6}{'one run':>10}{'scatter':>10}{'in pairs':>10}   the program by itself"
    for clock in found.clocks:
        ratio = clock.ratio
        yield (
            f"{clock.name:6}{readable(clock.median, 's'):>10}{clock.scatter:>10.1%}{clock.paired:>10.1%}"
            f"   {ratio.estimate:.4f} ({ratio.low:.4f} to {ratio.high:.4f})"
        )
    yield ""
    yield (
        f"pairs of which 'perun compare' sees a change, {POWER:.0%} of the times, with a confidence of "
        f"{DEFAULTS.confidence:.0%}:"
    )
    for effects in zip(*(clock.effects for clock in found.clocks), strict=True):
        needed = [
            f"{clock.name}: {_needed(effect):22}" for clock, effect in zip(found.clocks, effects, strict=True)
        ]
        yield f"{effects[0].share:>6.0%}   {'   '.join(needed)}".rstrip()
    yield ""
    best = ", ".join(f"{clock.smallest:.1%} by {clock.name}" for clock in found.clocks)
    yield f"the smallest change seen in the {SECONDS:.0f} s that it takes by default: {best}"
    drift = max(found.clocks, key=lambda clock: abs(clock.halves - 1))
    yield (
        f"measured one after the other, the same program would have seemed {drift.halves:.3f} times as slow "
        f"({drift.name}, the second half of all runs by the first)"
    )
    for condition in found.conditions:
        yield f"look: {clean(condition.message)}"
        if condition.advice:
            yield f"      {clean(condition.advice)}"


def _needed(effect: DetectableEffect) -> str:
    if effect.pairs is None or effect.seconds is None:
        return f"not in {MAX_PAIRS} pairs"
    return f"{effect.pairs} pairs, {readable(effect.seconds, 's')}"


@click.group(invoke_without_command=True)
@json_option()
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Show what can be measured on this machine, and how reliably.

    Looks at this machine, the project and the plugins, and says what to do about what is not as it should be.
    Only the speed of the machine is measured; its noise is by `perun doctor noise`.
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
@json_option()
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
        "speed": asdict(found.speed) if found.speed else None,
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
        self._findings([found.speed] if found.speed else [])
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
