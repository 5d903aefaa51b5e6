"""`perun bisect`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import click

from perun.cli.answers import bisect as answers
from perun.cli.commands.command_options import CommandOptions, sizes_of
from perun.cli.commands.compare import complete_metric
from perun.cli.completing import complete_minor
from perun.cli.options import with_options_of
from perun.cli.session import Session
from perun.errors import NOT_DECIDED, UsageError
from perun.plugin.params import param
from perun.porcelain.bisect import bisect as verb
from perun.porcelain.bisect import journal
from perun.porcelain.bisect.choosing import Bounds
from perun.porcelain.bisect.data import SECONDS, Asked, Seen
from perun.porcelain.compare.metrics import FREE
from perun.porcelain.compare.options import MAX_PAIRS
from perun.wording import plural


@dataclass(frozen=True)
class BisectOptions(CommandOptions):
    """What is measured, and how long."""

    metric: str = param(
        "",
        metavar="NAME",
        help=f"What to measure: {', '.join(FREE)}, or what a collector records, as instructions or "
        "memory:peak; by default cpu, or instructions where there is a location. With :growth behind it, the "
        "order of growth, as trace:growth.",
    )
    location: str = param(
        "",
        metavar="FUNCTION",
        help="Measure only this function, or another place that the collector records.",
    )
    sizes: str = param(
        "",
        short="-s",
        metavar="N,N,...",
        help="Workloads over which the order of growth is told; without, the sizes of the calls tell it.",
    )
    script: str = param(
        "",
        metavar="CMD",
        help="Measure nothing, but run CMD in each version: 0 is good, 1 to 127 bad, 125 cannot be judged, "
        "128 and more end the bisection, as for git bisect run.",
    )
    budget: float | None = param(
        None, metavar="SECONDS", help=f"Time for measuring; {SECONDS:g} for each version by default."
    )
    max_pairs: int = param(
        MAX_PAIRS,
        minimum=1,
        metavar="N",
        help="Pairs of runs of a version at most, where fewer do not decide.",
    )
    no_pin: bool = param(False, help="Do not keep a program that uses one core on one core.")
    resume: bool = param(False, help="Go on with the bisection that was interrupted.")
    reset: bool = param(False, help="Forget the bisection that was interrupted.")
    as_json: bool = param(False, long="--json", help="Answer as JSON.")

    def of(self, good: str | None, bad: str | None) -> Asked:
        """What is asked for.

        :raises click.BadParameter: if the budget is no time. :raises UsageError: if the sizes are none.
        """
        if self.budget is not None and not self.budget > 0:
            raise click.BadParameter(f"{self.budget:g} is no time", param_hint="'--budget'")
        return Asked(
            good, bad, self.cmd, self.args, self.workload, self.metric, self.location, self.script,
            self.budget, self.max_pairs, not self.no_pin, sizes_of(self.sizes),
        )  # fmt: skip


@click.command()
@click.argument("good", metavar="[GOOD]", required=False, shell_complete=complete_minor)
@click.argument("bad", metavar="[BAD]", required=False, shell_complete=complete_minor)
@with_options_of(BisectOptions, "given", metric={"shell_complete": complete_metric})
@click.pass_context
def bisect(ctx: click.Context, /, good: str | None, bad: str | None, given: BisectOptions) -> int:
    """Find the version that changed what a program costs.

    GOOD is a version before the change, BAD one with it, HEAD by default. A single version that `perun
    changes` names stands for its change, and without any it is the newest degradation whose version is not
    known. Few versions are measured, side by side with an end; where what is stored tells enough, none. What
    does not build is skipped: then the answer may be a range. Your files stay as they are.

    \b
    perun bisect v1.0 v2.0 -c './sort big.txt'
    perun bisect v1.0 --metric instructions --location compare
    perun bisect v1.0 --metric growth --location compare --sizes 50,100,200,400,800
    perun bisect v1.0 v2.0 --script 'sh test.sh'
    perun bisect --resume
    """
    session: Session = ctx.obj
    asked = given.of(good, bad)
    if given.reset:
        return _reset(session, alone=asked == Asked() and not given.resume)
    if given.resume:
        verb.nothing_to_resume(asked)
    with session.progress(0, "bisecting", enabled=not given.as_json) as bar, session.writing_to(bar.out):
        def tell(text: str) -> None:
            bar.update(text, 0, 0)

        watcher = verb.Watcher(tell, _see(session), lambda text: session.note(f"note: {text}"))
        try:
            found = verb.bisect(session.repository, asked, resume=given.resume, watcher=watcher)
        except KeyboardInterrupt:
            session.note("interrupted: what was measured is kept; go on with: perun bisect --resume")
            raise
    if given.as_json:
        answers.write_data(session, found)
    else:
        answers.answer(session, found)
    return 0 if found.range else NOT_DECIDED


def _reset(session: Session, *, alone: bool) -> int:
    """Forget what `--resume` would go on with.

    :raises UsageError: where more is asked for, or there is nothing to forget.
    """
    if not alone:
        raise UsageError("--reset forgets a bisection, and does nothing else", "leave out the rest")
    count = journal.forget(session.repository)
    if not count:
        raise UsageError("there is no interrupted bisection to forget", "begin one: perun bisect GOOD BAD")
    session.say(f"{plural(count, 'bisection')} forgotten; what was measured stays stored")
    return 0


def _see(session: Session) -> Callable[[Seen | None, Bounds], None]:
    """Tells of each version what it is like, and as git does, how many are left."""

    def see(seen: Seen | None, found: Bounds) -> None:
        if seen is not None:
            session.note(answers.line_of(seen))
        if found.open:
            session.note(answers.left(found))

    return see
