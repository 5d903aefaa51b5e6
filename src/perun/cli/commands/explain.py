"""`perun explain`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from perun.cli.answers import explain as answers
from perun.cli.commands.measuring import SEED
from perun.cli.completing import complete_minor
from perun.cli.options import with_options_of
from perun.cli.session import Session
from perun.errors import UsageError
from perun.plugin.params import param
from perun.porcelain.compare.options import share
from perun.porcelain.explain.explaining import explain as run
from perun.porcelain.explain.plan import ExplainOptions, plan


@dataclass(frozen=True)
class Options:
    """What is measured, and what is told."""

    cmd: str = param("", short="-c", metavar="CMD", help="Measure this command instead of the job matrix.")
    args: str = param("", short="-a", metavar="ARGS", help="Arguments of the command.")
    workload: str = param(
        "", short="-w", metavar="WORKLOAD", help="Its input: last arguments, '< file', or '<< \"text\"'."
    )
    sizes: str = param(
        "",
        short="-s",
        metavar="N,N,...",
        help="Also count instructions with these numbers as workload, and tell where the order of growth "
        "changed; five of them at least, the largest eight times the smallest.",
    )
    no_collect: bool = param(False, help="Measure nothing: use the profiles that are registered.")
    threshold: str = param(
        "0.5%",
        metavar="SHARE",
        help="The least change of a function that is told, of what the program costs.",
    )
    output: str = param("", short="-o", metavar="FILE", help="Also write a page with flame graphs.")
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
        _sizes(given.sizes),
        not given.no_collect,
        share(given.threshold, "--threshold"),
        given.seed,
    )
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
        answers.answer(session, found)
        if given.output:
            session.note(f"written: {given.output}")
    return 0


def _sizes(text: str) -> tuple[str, ...]:
    """The numbers of `--sizes`, ascending.

    :raises UsageError: where one is none, or there are too few.
    """
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not all(word.isascii() and word.isdigit() and int(word) for word in words):
        raise UsageError(
            f"--sizes: {text!r} is no list of numbers above 0", "write it as e.g. 50,100,200,400,800"
        )
    found = sorted({int(word) for word in words})
    if text and (len(found) < 5 or found[-1] < 8 * found[0]):
        raise UsageError(
            f"--sizes: {text} does not tell an order of growth",
            "give five numbers at least, the largest eight times the smallest, e.g. 50,100,200,400,800",
        )
    return tuple(map(str, found))
