"""`perun compare`."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import click

from perun.cli.commands.check import FORMAT, OutputOptions, VerdictOptions, answering
from perun.cli.commands.measuring import SEED
from perun.cli.completing import complete_minor
from perun.cli.options import CommandOptions, with_options_of
from perun.cli.session import Session
from perun.core.errors import UsageError
from perun.measurement.difference import Rules
from perun.plugin.params import param
from perun.plugin.registry import Registry
from perun.profile.sampled import SAMPLED
from perun.running.compare import compare as verb
from perun.running.compare import plan as asked
from perun.running.compare.compare import CompareOutcome
from perun.running.compare.instruments import FREE
from perun.running.compare.plan import plan, plan_sides
from perun.running.suite import suite as suites
from perun.running.suite.programs import SuiteOptions


@dataclass(frozen=True)
class CompareMeasuringOptions(CommandOptions):
    """What is measured, how often, and what counts as a change."""

    metric: tuple[str, ...] = param(
        (),
        metavar="NAME",
        help=f"What to measure: {', '.join(FREE)}, or what a collector records, as instructions or "
        "memory:peak; may be repeated. By default wall and cpu.",
    )
    threshold: str | None = param(
        None, metavar="SHARE", help="The smallest change that matters, e.g. 5%; by default as configured, 2%."
    )
    confidence: str | None = param(
        None, metavar="SHARE", help="How sure a verdict must be, e.g. 95%; by default as configured, 99%."
    )
    budget: float | None = param(
        None,
        metavar="SECONDS",
        help=f"Time for measuring, without building; {asked.SECONDS:g} for each command by default.",
    )
    max_pairs: int = param(
        asked.MAX_PAIRS, minimum=1, metavar="N", help="Pairs at most, where fewer do not decide."
    )
    order: str = param(
        asked.ORDERS[0], choices=asked.ORDERS, help="Order of the runs: random in each pair, or mirrored."
    )
    builds: int = param(
        1, minimum=1, metavar="N", help="Build each side N times, and measure the builds in turns."
    )
    no_pin: bool = param(False, help="Do not keep a program that uses one core on one core.")
    duet: bool = param(
        False, help="Run both sides at the same time, on two cores that are exchanged from pair to pair."
    )
    check_output: bool = param(
        False, help="Refuse to compare what does not write the same to its standard output on both sides."
    )
    always: bool = param(
        False,
        help="Measure also where both sides are the same program and input, or execute no code that changed.",
    )
    seed: int | None = param(
        None,
        metavar="N",
        help=SEED.replace("(or 0).", "(or 0); with --suite, of the order and the environments of its runs."),
    )
    suite: bool = param(False, help="Measure the named benchmarks of the project, in place of commands.")
    benchmark: tuple[str, ...] = param(
        (), metavar="PATTERN", help="Of a suite only the benchmarks of this shell pattern; may be repeated."
    )
    harness: str = param("", metavar="NAME", help="The harness of the suite, where there are several.")

    @property
    def suite_options(self) -> SuiteOptions | None:
        """Which benchmarks of a suite are measured; None where commands are.

        :raises UsageError: where an option of commands is given, too.
        """
        if not (self.suite or self.benchmark or self.harness):
            return None
        either = "leave one of them out"
        of_commands = {
            "--cmd": (self.cmd, either),
            "--args": (self.args, either),
            "--workload": (self.workload, either),
            "--duet": (self.duet, either),
            "--builds": (self.builds > 1, either),
            "--check-output": (self.check_output, either),
            "--always": (self.always, "leave it out: a suite is measured whatever both sides are"),
            "--metric cpu": (
                "cpu" in self.metric,
                "leave it out, or name what the benchmarks tell: wall, memory, allocations",
            ),
        }
        for option, (value, hint) in of_commands.items():
            if value:
                raise UsageError(f"{option} does not go with --suite", hint)
        return SuiteOptions(self.harness, self.benchmark)

    def over(self, base: str | None, head: str | None, rules: Rules) -> asked.CompareOptions:
        """These options for the comparison of two revisions.

        :param rules: of the configuration.
        :raises UsageError: if a share is none.
        """
        if self.threshold is not None:
            threshold = asked.share(self.threshold, "--threshold")
            rules = rules._replace(threshold=threshold, exact=threshold)
        if self.confidence is not None:
            confidence = asked.share(self.confidence, "--confidence")
            rules = rules._replace(
                confidence=confidence, maybe_confidence=min(rules.maybe_confidence, confidence)
            )
        if self.budget is not None and not self.budget > 0:
            raise click.BadParameter(f"{self.budget:g} is no time", param_hint="'--budget'")
        return asked.CompareOptions(
            base,
            head,
            self.cmd,
            self.args,
            self.workload,
            self.metric or asked.CompareOptions.metrics,
            rules,
            self.builds,
            self.order,
            self.budget,
            self.max_pairs,
            not self.no_pin,
            self.always,
            self.seed,
            self.duet,
            self.check_output,
        )


def _of_harness(session: Session, given: CompareMeasuringOptions) -> CompareMeasuringOptions:
    """The options, where the command is that of a harness, as profiles name it, for that benchmark."""
    registry = session.registry
    for name in registry.names("harness") if given.cmd and given.args else ():
        if given.cmd == getattr(registry.get("harness", name), "command", ""):
            benchmark = f"{given.args} {given.workload}".rstrip()
            return replace(given, cmd="", args="", workload="", harness=name, benchmark=(benchmark,))
    return given


def complete_metric(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of metrics: what each run tells, and the collectors."""
    names = [*FREE, *(name for name in Registry().names("collect") if name != "time")]
    return [name for name in names if name.startswith(incomplete)]


def complete_harness(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of harnesses."""
    return [name for name in Registry().names("harness") if name.startswith(incomplete)]


@click.command()
@click.argument("base", metavar="[BASE]", required=False, shell_complete=complete_minor)
@click.argument("head", metavar="[HEAD]", required=False, shell_complete=complete_minor)
@with_options_of(
    CompareMeasuringOptions,
    "given",
    metric={"shell_complete": complete_metric},
    harness={"shell_complete": complete_harness},
)
@with_options_of(VerdictOptions, "answer", format=FORMAT)
@click.pass_context
def compare(
    ctx: click.Context,
    /,
    base: str | None,
    head: str | None,
    given: CompareMeasuringOptions,
    answer: VerdictOptions,
) -> int:
    """Measure two versions side by side, and say what changed.

    HEAD is the working directory as it is, uncommitted changes included; BASE is its merge base with the
    main branch. Each side is built in a working copy of its own, your files stay as they are. Both run in
    turns, in random order, until the answer is certain or the time is over; with --duet at the same time.
    What was measured is stored.

    \b
    perun compare                              what my changes do to the job matrix
    perun compare -c ./prog -w input.txt       ... to one command
    perun compare v1.0 v2.0 --metric cpu --budget 300
    perun compare --suite                      ... to each benchmark of the project
    perun compare --benchmark '*Parse*' main   ... to some of them, against main
    """
    session: Session = ctx.obj
    code, outcome = measured(session, base, head, given, answer.destination)
    if outcome.interruption is not None:
        session.note("interrupted: this is the verdict so far; nothing is stored of what was not decided")
        raise outcome.interruption
    return code


def measured(
    session: Session,
    base: str | None,
    head: str | None,
    given: CompareMeasuringOptions,
    destination: OutputOptions,
) -> tuple[int, CompareOutcome]:
    """Measure two versions and write the answer; the exit code, and what was found."""
    given = _of_harness(session, given)
    rules = Rules.of(session.repository.config.section("degradation"))
    options = given.over(base, head, rules)
    suite = given.suite_options
    planned = (plan_sides if suite else plan)(session.repository, options)
    if planned.note:
        session.note(planned.note)
    words = ["compare", *(one for one in (base, head) if one)]
    many = bool(suite) or any(one.partition(":")[0] == SAMPLED for one in options.metrics)
    listed = not many or destination.format not in ("text", "markdown")  # of hundreds, what did not change
    with answering(session, destination, words, progress="comparing", verbose=listed) as (writer, bar):
        if suite:
            rng = random.Random(given.seed)
            outcome = suites.compare(
                session.repository, planned, options, suite, bar.update, bar.expect, rng, session.note
            )
        else:
            outcome = verb.compare(
                session.repository, planned, options, bar.update, bar.expect, note=session.note
            )
        bar.close()
        writer.version(outcome.report)
    return writer.code, outcome
