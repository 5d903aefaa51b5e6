"""`perun explain`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from perun.cli.answers import explain as answers
from perun.cli.commands.command_options import CommandOptions, sizes_of
from perun.cli.commands.measuring import SEED
from perun.cli.completing import complete_minor
from perun.cli.options import with_options_of
from perun.cli.session import Session
from perun.errors import UsageError
from perun.plugin.params import param
from perun.porcelain.compare.options import share
from perun.porcelain.explain.explaining import explain as run
from perun.porcelain.explain.plan import COLLECTED, ExplainOptions, plan


@dataclass(frozen=True)
class Options(CommandOptions):
    """What is measured, and what is told."""

    sizes: str = param(
        "",
        short="-s",
        metavar="N,N,...",
        help="Also count instructions with these numbers as workload, and tell where the order of growth "
        "changed; five of them at least, the largest eight times the smallest.",
    )
    no_collect: bool = param(False, help="Measure nothing: use the profiles that are registered.")
    collect: str = param(
        ",".join(COLLECTED),
        metavar="WHAT,...",
        help="What is measured where it is not registered; calls are those of the functions that cost more.",
    )
    budget: float | None = param(
        None, metavar="SECONDS", help="Begin no measurement after this time; what is missing then is said."
    )
    threshold: str = param(
        "0.5%",
        metavar="SHARE",
        help="The least change of a function that is told, of what the program costs.",
    )
    output: str = param("", short="-o", metavar="FILE", help="Also write a page with flame graphs.")
    all: bool = param(False, help="All functions that changed, however many.")
    json: bool = param(False, help="Answer as JSON.")
    seed: int | None = param(None, metavar="N", help=SEED)


@click.command()
@click.argument("versions", metavar="COMMIT|A..B", shell_complete=complete_minor)
@click.argument("location", metavar="[LOCATION]", required=False, default="")
@with_options_of(Options, "given", output={"type": click.Path()})
@click.pass_context
def explain(ctx: click.Context, /, versions: str, location: str, given: Options) -> int:
    """Say why a version costs more: functions, and lines of the diff.

    Counts instructions and memory of both versions, unless profiles of them are registered, and tells the
    functions whose cost changed, worst first, with the lines of the diff within them. A version is compared
    with its first parent. LOCATION is a function. Each side is built in a working copy of its own, your files
    stay as they are; what was measured is stored.

    \b
    perun explain HEAD                             why is my last commit slower
    perun explain 4baf672 sort -o why.html         ... one function, and a page
    perun explain v1.0..v2.0 -c ./prog -w 400 --sizes 50,100,200,400,800
    """
    session: Session = ctx.obj
    if given.output and Path(given.output).is_dir():
        raise UsageError(f"--output: {given.output} is a folder", "name a file, e.g. why.html")
    options = ExplainOptions(
        versions,
        location,
        given.cmd,
        given.args,
        given.workload,
        sizes_of(given.sizes),
        not given.no_collect,
        share(given.threshold, "--threshold"),
        given.seed,
        _collected(given.collect),
        given.budget,
    )
    if given.budget is not None and not given.budget > 0:
        raise UsageError(f"--budget: {given.budget:g} is no time", "give seconds above 0")
    if options.sizes and not options.collects:
        raise UsageError("--sizes needs measurements, which --no-collect forbids", "leave out one of them")
    planned = plan(session.repository, options)
    with session.progress(0, "explaining", enabled=not given.json) as bar:
        found = run(session.repository, planned, options, bar.update, pages=bool(given.output))
    if given.output:
        answers.write_page(Path(given.output), found)
    if given.json:
        answers.write_data(session, found)
    else:
        answers.answer(session, found, every=given.all)
        if given.output:
            session.note(f"written: {given.output}")
    return 0


def _collected(text: str) -> tuple[str, ...]:
    """What `--collect` names.

    :raises UsageError: where a name is none of those that there are.
    """
    names = tuple(word.strip() for word in text.split(",") if word.strip())
    unknown = [name for name in names if name not in COLLECTED]
    if unknown or not names:
        wrong = f"{unknown[0]!r} is none" if unknown else "nothing is named"
        raise UsageError(
            f"--collect: {wrong} of {', '.join(COLLECTED)}",
            "name one or more of them, with commas; or use what is registered: --no-collect",
        )
    return names
