"""`perun fuzz` (manual 3.2.17 and 10.3.1)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from perun.cli.answers import fuzz as answers
from perun.cli.answers import fuzz as texts
from perun.cli.answers.data import write_json
from perun.cli.options import json_option, read_params, with_options_of
from perun.cli.session import Session
from perun.core.errors import UsageError
from perun.fuzz.mutating import DEFAULT, INCREASE, STRATEGIES, SizeLimit
from perun.plugin.params import param
from perun.plugin.registry import Registry
from perun.running.fuzz import fuzz as verb
from perun.running.fuzz import keep as keeping
from perun.running.fuzz import options as asked
from perun.running.fuzz import replay as replaying

_PARAMS = "a YAML file, key=value, or YAML"


@dataclass(frozen=True)
class FuzzingOptions:
    """What is fuzzed, how it is searched, and how what was found is measured; defaults are those of the
    verb."""

    cmd: str = param("", short="-b", metavar="CMD", help="The command to fuzz, e.g. ./prog. Required.")
    args: str = param(
        "", short="-a", metavar="ARGS", help="Its arguments; @@ in them is the input, else it comes last."
    )
    input_sample: tuple[str, ...] = param(
        (),
        short="-w",
        metavar="PATH",
        help="Inputs to begin with (seeds): a file, or a folder of files; may be repeated. Required.",
    )
    output_dir: str = param("", short="-o", metavar="DIR", help="The folder for the results. Required.")
    collector: str = param("time", short="-c", metavar="NAME", help="Collector that measures what was found.")
    collector_params: tuple[str, ...] = param(
        (), short="-cp", metavar="PARAMS", help=f"Parameters of the collector: {_PARAMS}."
    )
    postprocessor: tuple[str, ...] = param(
        (), short="-p", metavar="NAME", help="Postprocess each of its profiles; may be repeated."
    )
    postprocessor_params: tuple[str, ...] = param(
        (),
        short="-pp",
        metavar="PARAMS",
        help=f"Parameters of the postprocessor: {_PARAMS}; the first are of the first -p, and so on.",
    )
    check: tuple[str, ...] = param(
        (asked.CHECK,), metavar="METHOD", help="Method that compares a result with its seed; may be repeated."
    )
    minor_version: str | None = param(
        None, short="-m", metavar="VERSION", help="Fuzz this version; else the working directory as it is."
    )
    workloads_filter: str = param(
        "", short="-wf", metavar="REGEX", help="Take only seeds in whose path REGEX is found."
    )
    skip_coverage_testing: bool = param(
        False, help="Measure each mutation, without counting what it executes before."
    )
    source_path: str = param("", short="-s", metavar="DIR", help="Folder of the sources.")
    gcno_path: str = param("", short="-g", metavar="DIR", help="Folder of the .gcno files of gcc.")
    timeout: float = param(
        asked.SECONDS, short="-t", minimum=0.1, metavar="SECONDS", help="Time for all of it."
    )
    hang_timeout: float = param(
        asked.HANG, short="-h", minimum=0.01, metavar="SECONDS", help="An input that takes longer is a hang."
    )
    executions: int | None = param(
        None, minimum=1, metavar="N", help="Search until the program has run N times, if that is earlier."
    )
    max_size: int | None = param(
        None, short="-N", minimum=1, metavar="BYTES", help="Mutations have up to so many bytes."
    )
    max_size_increase: int | None = param(
        None,
        short="-mi",
        minimum=0,
        metavar="BYTES",
        help=f"... so many bytes more than the largest seed; {INCREASE} by default.",
    )
    max_size_ratio: float | None = param(
        None, short="-mp", minimum=1, metavar="RATIO", help="... so many times the bytes of the largest seed."
    )
    exec_limit: int = param(
        asked.GATHERING, short="-e", minimum=1, metavar="N", help="Runs between two rounds of measuring."
    )
    interesting_files_limit: int = param(
        asked.INTERESTING,
        short="-l",
        minimum=1,
        metavar="N",
        help="Interesting inputs that are enough for a round of measuring.",
    )
    coverage_increase_rate: float = param(
        asked.RATE,
        short="-cr",
        minimum=1,
        metavar="RATIO",
        help="An input is interesting that executes so many times the lines of the seeds; adapts.",
    )
    mutations_per_rule: str = param(
        DEFAULT, short="-mpr", choices=tuple(STRATEGIES), help="How often a rule is applied in an iteration."
    )
    regex_rules: str = param(
        "", short="-r", metavar="FILE", help="Further rules: a YAML file of regular expressions."
    )
    dictionary: str = param(
        "", metavar="FILE", help="Words that mean something to the program, one in a line."
    )
    backend: str = param(
        asked.BACKENDS[0], choices=asked.BACKENDS, help="What counts: as the program was built, by default."
    )
    input: str = param(asked.INPUTS[0], choices=asked.INPUTS, help="How the program gets its input.")
    build: str = param(
        "",
        metavar="CMD",
        help="Build the program in a copy; {flags}, {cc} and {cxx} in CMD are what counting needs.",
    )
    seed: int | None = param(
        None, minimum=0, metavar="N", help="Seed of the random numbers: the same search again."
    )
    jobs: int = param(1, short="-j", minimum=1, metavar="N", help="Run N programs at a time.")
    minimize: bool = param(
        True,
        long="--minimize/--no-minimize",
        help=f"Find the smallest form of the best {asked.MINIMIZED} results, and how their cost grows.",
    )
    no_plotting: bool = param(False, short="-np", help="Draw no graphs.")
    ignore_failure: bool = param(False, help="Go on where the program ends with another status than 0.")

    def of(self, session: Session) -> asked.FuzzOptions:
        """These options for the verb; paths are relative to the current directory.

        :raises UsageError: if something lacks, or is of a wrong form.
        """
        if not self.output_dir:
            raise UsageError("--output-dir (-o) is missing", "e.g. perun fuzz -b ./prog -w seeds -o results")
        for name in ("timeout", "hang_timeout", "max_size_ratio", "coverage_increase_rate"):
            if math.isnan(getattr(self, name) or 0.0):
                raise click.BadParameter("nan is no number", param_hint=f"'--{name.replace('_', '-')}'")
        cwd, root = session.cwd, session.repository.working_root
        return asked.FuzzOptions(
            self.cmd,
            self.args,
            tuple(_from(root, cwd / one) for one in self.input_sample),
            cwd / self.output_dir,
            self.collector,
            _plain(read_params(self.collector_params)),
            self._postprocessors(),
            self.check,
            self.minor_version,
            self.workloads_filter,
            not self.skip_coverage_testing,
            _absolute(cwd, self.source_path),
            _absolute(cwd, self.gcno_path),
            self.timeout,
            self.hang_timeout,
            self.executions,
            SizeLimit(self.max_size, self.max_size_increase, self.max_size_ratio),
            self.exec_limit,
            self.interesting_files_limit,
            self.coverage_increase_rate,
            self.mutations_per_rule,
            _absolute(cwd, self.regex_rules),
            _absolute(cwd, self.dictionary),
            self.backend,
            self.input,
            self.build,
            self.seed,
            self.jobs,
            asked.MINIMIZED if self.minimize else 0,
            not self.no_plotting,
            self.ignore_failure,
        )

    def _postprocessors(self) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        names, given = self.postprocessor, self.postprocessor_params
        if len(names) == 1:
            return ((names[0], _plain(read_params(given))),)
        if len(given) > len(names):
            raise UsageError("there are more --postprocessor-params (-pp) than postprocessors", "add -p NAME")
        params = [_plain(read_params((one,))) for one in given]
        params += [{} for _ in names[len(given) :]]
        return tuple(zip(names, params, strict=True))


def _from(root: Path, path: Path) -> str:
    """The path relative to the folder of the project, where commands run, if it is in that."""
    return str(path.relative_to(root) if path.is_relative_to(root) else path)


def _absolute(cwd: Path, name: str) -> str:
    return str(cwd / name) if name else ""


def _plain(params: Mapping[str, Any]) -> dict[str, Any]:
    """As a plugin knows them: the manual writes some with dashes."""
    return {key.replace("-", "_"): value for key, value in params.items()}


def _complete(family: str) -> Any:
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> Sequence[str]:
        return [name for name in Registry().names(family) if name.startswith(incomplete)]

    return {"shell_complete": complete}


_PATHS: dict[str, dict[str, Any]] = {
    name: {"type": click.Path()}
    for name in ("output_dir", "source_path", "gcno_path", "regex_rules", "dictionary")
}
_FAILURES = {"remaining": replaying.REMAINING, "worse": frozenset({"worse"})}
"""Levels of `--fail-on`, and the states of results that are failures."""
_RESUMED = ("timeout", "executions", "jobs", "minimize", "no_plotting")
"""Options that may be others where a campaign goes on."""


@click.command(context_settings={"help_option_names": ["--help"]})  # -h is the manual's --hang-timeout
@with_options_of(
    FuzzingOptions,
    "given",
    **_PATHS,
    input_sample={"type": click.Path()},
    collector=_complete("collect"),
    postprocessor=_complete("postprocess"),
    check=_complete("check"),
)
@click.option("--resume", is_flag=True, help="Go on with the campaign in --output-dir.")
@click.option(
    "--keep", type=click.Path(), metavar="DIR", help="Make workloads of the job matrix of the results in DIR."
)
@click.option(
    "--replay",
    type=click.Path(),
    metavar="DIR",
    help="Measure the results in DIR again, in the version -m or the working directory: what is repaired?",
)
@click.option(
    "--result",
    "names",
    multiple=True,
    metavar="NAME",
    help="With --keep and --replay: only this result; may be repeated.",
)
@click.option(
    "--fail-on",
    type=click.Choice(tuple(_FAILURES)),
    help="With --replay: exit with code 1 where a result remains slow, or is slower than it was.",
)
@json_option()
@click.pass_context
def fuzz(
    ctx: click.Context,
    /,
    given: FuzzingOptions,
    resume: bool,
    keep: str | None,
    replay: str | None,
    names: tuple[str, ...],
    fail_on: str | None,
    as_json: bool,
) -> int:
    """Find inputs that make a program slow.

    Mutates the seeds, keeps what executes more lines, measures that beside its seed, and writes a folder of
    results. The program has to be compiled for counting (gcc --coverage), or --build does that. Ctrl-C ends
    it with the results so far; a campaign that was killed goes on with --resume.

    \b
    perun fuzz -b ./prog -w seeds/ -o results
    perun fuzz -b ./prog -w words.txt -o results --build 'make CFLAGS={flags}' --jobs 2 -t 120
    perun fuzz -o results --resume
    perun fuzz --keep results
    perun fuzz --replay results --fail-on remaining
    """
    session: Session = ctx.obj
    if keep or replay:
        return _use_results(ctx, session, given, _Use(keep, replay, names, fail_on, as_json), resume)
    if names or fail_on:
        raise UsageError("--result and --fail-on belong to --keep and --replay", "name a folder with these")
    with answers.watching(session) as view:
        if resume:
            found = _resumed(ctx, session, given, view)
        else:
            found = verb.fuzz(session.repository, given.of(session), view.watch, view.report)
    if as_json:
        answers.as_json(session.out, found)
    else:
        answers.as_text(session, found)
    for note in found.notes:
        session.note(f"note: {note}")
    if found.interruption is not None:
        session.note("interrupted: these are the results so far; go on with --resume")
        raise found.interruption
    return 0


@dataclass(frozen=True)
class _Use:
    """What is done with the results of a campaign."""

    keep: str | None
    replay: str | None
    names: tuple[str, ...]
    fail_on: str | None
    as_json: bool


def _use_results(ctx: click.Context, session: Session, given: FuzzingOptions, use: _Use, resume: bool) -> int:
    """Keep results as workloads, or measure them again; the exit code.

    :raises UsageError: where an option is given that does nothing here.
    """
    others = _named(ctx, given) - ({"minor_version"} if use.replay else set())
    if others or resume or (use.keep and use.replay) or (use.keep and use.fail_on):
        options = ", ".join(sorted(f"--{name.replace('_', '-')}" for name in others))
        options = options or ("--resume" if resume else "--replay" if use.replay else "--fail-on")
        what = "--keep" if use.keep else "--replay"
        raise UsageError(f"{what} takes results as they are, {options} cannot be combined with it",
                         f"leave out {options}")  # fmt: skip
    if use.keep:
        kept = keeping.keep(session.repository, session.cwd / use.keep, use.names)
        _answer(session, kept.as_json(), texts.kept_lines(kept), kept.notes, use)
        return 0
    with answers.watching(session) as view:
        folder = session.cwd / (use.replay or "")
        found = replaying.replay(
            session.repository, folder, use.names, revision=given.minor_version, report=view.report
        )
    _answer(session, found.as_json(), texts.replay_lines(found), found.notes, use)
    failures = _FAILURES[use.fail_on] if use.fail_on else ()
    return int(any(one.state in failures for one in found.results))


def _answer(
    session: Session, data: Mapping[str, Any], lines: Iterable[str], notes: Sequence[str], use: _Use
) -> None:
    if use.as_json:
        write_json(session.out, data)
    else:
        for line in lines:
            session.out.write(f"{line}\n")
    for note in notes:
        session.note(f"note: {note}")


def _named(ctx: click.Context, given: FuzzingOptions) -> set[str]:
    """The options that the user gave."""
    source = click.core.ParameterSource.COMMANDLINE
    return {name for name in vars(given) if ctx.get_parameter_source(name) is source}


def _resumed(
    ctx: click.Context, session: Session, given: FuzzingOptions, view: answers.CampaignView
) -> verb.FuzzOutcome:
    """Go on with a campaign: it has its options, and some may be others now.

    :raises UsageError: where another option is given.
    """
    named = [name for name in vars(given) if name in _named(ctx, given)]
    others = [name for name in named if name not in (*_RESUMED, "output_dir")]
    if others:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in others)
        raise UsageError(f"--resume goes on with the options that it began with, not with {options}",
                         "leave them out, or begin another campaign")  # fmt: skip
    if not given.output_dir:
        raise UsageError("--resume needs the folder", "perun fuzz --resume --output-dir DIR")

    def changes(before: asked.FuzzOptions) -> asked.FuzzOptions:
        now = replace(given, cmd="given", input_sample=("given",)).of(session)
        values: dict[str, dict[str, Any]] = {
            "timeout": {"seconds": now.seconds},
            "executions": {"executions": now.executions},
            "jobs": {"jobs": now.jobs},
            "minimize": {"minimize": now.minimize},
            "no_plotting": {"plotting": now.plotting},
        }
        for name in named:
            before = replace(before, **values.get(name, {}))
        return before

    return verb.resume(session.repository, session.cwd / given.output_dir, changes, view.watch, view.report)
