"""`perun ci`: a gate of continuous integration, in two halves: what measures, and what tells."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import click
import msgspec

from perun.cli.answers import gate as telling
from perun.cli.answers.check.wording import command_of
from perun.cli.commands.check import OutputOptions, write_report
from perun.cli.commands.compare import CompareMeasuringOptions, complete_harness, complete_metric, measured
from perun.cli.completing import complete_minor
from perun.cli.options import with_options_of
from perun.cli.session import Session
from perun.cli.table import clean, one_line
from perun.core import atomic, regular
from perun.core.errors import PerunError, Terminated, UsageError, VersionControlError
from perun.core.process import programs
from perun.history.check.report import LEVELS, Comparison, VersionReport, is_degradation
from perun.plugin.params import param
from perun.profile.changes import DegradationInfo
from perun.profile.uid import uid_in
from perun.repository.init import init
from perun.repository.repository import PERUN_FOLDER, top_of_git
from perun.running.explain.explaining import explain
from perun.running.explain.plan import ExplainOptions, plan
from perun.sharing import forge as forges
from perun.sharing.forge import ARTIFACT, REPORT, Forge, Subject
from perun.sharing.gate import LARGEST, Gate, failed, read, short, written

FILES: Final = {"json": "check.json", "sarif": "perun.sarif", "junit": "junit.xml"}
"""The reports of the folder, by format."""
EXPLAINED: Final = 2
"""Commands that got slower and are explained."""
NOTIFY: Final = 60.0
"""Seconds that a notification may take."""
INTERRUPTED: Final = 130


@dataclass(frozen=True)
class GateOptions:
    """What becomes of what was measured."""

    fail_on: str = param(
        "degradation", choices=tuple(LEVELS), help="Exit with code 1 on such a change, as of perun compare."
    )
    config: str = param(
        "", metavar="FILE", help="Make a Perun repository first, with this local configuration."
    )
    explain: bool = param(False, help="Say why, where a command got slower: as perun explain does.")
    explain_budget: float = param(120.0, minimum=1, metavar="SECONDS", help="Time for that.")
    notify: str = param("", metavar="CMD", help="Give the report, as JSON, to this command of the shell.")
    folder: str = param(ARTIFACT, metavar="FOLDER", help="Where the reports are written.")


@click.group()
def ci() -> None:
    """Gate merge requests: measure in one job, tell in another.

    `perun ci run` measures, needs no rights, and leaves a folder of reports. `perun ci report` tells what is
    in it: in one comment of the pull request, and by a check on its head commit.
    """


@ci.command()
@click.argument("base", metavar="[BASE]", required=False, shell_complete=complete_minor)
@click.argument("head", metavar="[HEAD]", required=False, shell_complete=complete_minor)
@with_options_of(GateOptions, "gate")
@with_options_of(
    CompareMeasuringOptions,
    "given",
    metric={"shell_complete": complete_metric},
    harness={"shell_complete": complete_harness},
)
@click.pass_obj
def run(
    session: Session,
    /,
    base: str | None,
    head: str | None,
    given: CompareMeasuringOptions,
    gate: GateOptions,
) -> int:
    """Measure what a pull request does, and write the reports.

    As `perun compare BASE HEAD`, whose options and exit codes it has. In a job of GitHub or GitLab, BASE is
    what the pull request is merged into, and HEAD what is checked out. The folder has gate.json, which
    `perun ci report` reads, comment.md, check.json, perun.sarif, junit.xml and badge.svg.

    \b
    perun ci run --config perf/perun.yml          in a fresh clone, with what is measured in perf/perun.yml
    perun ci run --explain --budget 120 main HEAD
    """
    folder = _made(session.cwd / gate.folder)
    forge = forges.of(session.environ)
    found = failed(3, gate.fail_on, "it ended before anything was measured", "see the log of the run")
    try:
        _initialize(session, gate.config)
        base, head = _ends(session, forge, base, head)
        if base and head:
            found = msgspec.structs.replace(
                found, base=session.repository.version(base), head=session.repository.version(head)
            )
        to = OutputOptions("text", None, gate.fail_on)
        code, outcome = measured(session, base, head, given, to)
        report = outcome.report
        against = _base_of(report) or session.repository.version(base)
        suite = given.suite_options is not None
        found = telling.gate_of(report, against, code, gate.fail_on, suite=suite, budget=given.budget)
        for name, file in FILES.items():
            write_report(session, name, folder / file, report, gate.fail_on)
        if outcome.interruption is not None:
            raise outcome.interruption
        if gate.explain:
            found, places = _explained(session, found, report, gate.explain_budget, suite=suite)
            if places:
                write_report(session, "sarif", folder / FILES["sarif"], report, gate.fail_on, places)
    except PerunError as problem:
        message, hint = one_line(problem.message), one_line(problem.hint)
        found = failed(problem.exit_code, gate.fail_on, message, hint, base=found.base, head=found.head)
        raise
    except (KeyboardInterrupt, Terminated):
        found = msgspec.structs.replace(found, code=INTERRUPTED, error="it was interrupted")
        raise
    finally:
        _write(session, folder, found)
        _notify(session, gate.notify, found)
    return found.code


@ci.command()
@click.argument("folder", metavar="[FOLDER]", required=False, type=click.Path(path_type=Path))
@click.option("--notify", metavar="CMD", default="", help="Give the report, as JSON, to this command too.")
@click.pass_obj
def report(session: Session, /, folder: Path | None, notify: str) -> int:
    """Tell what `perun ci run` has found: in one comment, and by a check on the head commit.

    Runs in a job of GitHub Actions or GitLab that has the right to, by the token in GITHUB_TOKEN (or
    PERUN_TOKEN). In a workflow of the event `workflow_run` the report is read from the artifact of the run
    that has ended, and which commit and pull request it is about says the event. In a scheduled pipeline of
    GitLab the reports of open merge requests of forks are read, from the jobs of the forks. Nothing of the
    repository is run. Elsewhere the report is read from FOLDER, perun-ci by default.
    """
    forge = forges.of(session.environ)
    if forge is None:
        raise UsageError(
            "this is no job of GitHub or GitLab", f"what was found is in {folder or ARTIFACT}/comment.md"
        )
    troubles: list[PerunError] = []
    for subject in forge.subjects(in_folder=folder is not None):
        if subject.untold:
            session.note(f"note: #{subject.number} is not reported: {one_line(subject.why)}; see docs/ci.md")
            continue
        found = _received(forge, subject, folder)
        if _told(session, forge, subject, found, troubles):
            _notify(session, notify, found, subject)
    for problem in troubles[:-1]:
        session.fail(problem.message, problem.hint)
    if troubles:
        raise troubles[-1]
    return 0


def _received(forge: Forge, subject: Subject, folder: Path | None) -> Gate:
    """The report; where there is none that can be read, that this is so."""
    try:
        data = forge.artifact(subject) if folder is None else None
        if data is None:
            data = regular.read_regular((folder or Path(ARTIFACT)) / REPORT, LARGEST + 1)
        found = read(data)
    except (PerunError, OSError) as problem:
        hint = (
            problem.hint if isinstance(problem, PerunError) else "run it in the same job, or name the folder"
        )
        message = problem.message if isinstance(problem, PerunError) else f"there is no report: {problem}"
        return failed(PerunError.exit_code, "degradation", one_line(message), one_line(hint))
    if subject.concluded not in ("", "success") and not found.code:
        # What the job says is its own; how it ended says the forge.
        text = f"the report tells of no failure, but its run ended with: {subject.concluded}"
        return failed(PerunError.exit_code, found.level, text, "see the log of the run")
    return found


def _told(session: Session, forge: Forge, subject: Subject, found: Gate, troubles: list[PerunError]) -> bool:
    """Set the check and write the comment; whether that is news: reports of forks are read again and again.

    :param troubles: what failed of it is put there.
    """
    result = telling.check(found, subject.url, subject.head)
    try:
        if not subject.artifact:
            forge.check(subject, result)
            session.say(f"check on {subject.head[:10]}: {result.conclusion}, {result.title}")
    except PerunError as problem:
        troubles.append(problem)
    if subject.number is None:
        session.note(f"note: no comment is written: {subject.why or 'this is no pull request'}")
        return True
    done = ""
    try:
        text = telling.comment(found, subject.url, subject.head)
        nothing = not (found.code or found.slower or found.faster or found.undecided)
        done = forge.comment(subject, text, telling.MARK, create=not nothing)
        session.say(f"comment of #{subject.number}: {done}")
    except PerunError as problem:
        troubles.append(problem)
    return not subject.artifact or done in ("created", "updated")


def _made(folder: Path) -> Path:
    """The folder, emptied of earlier reports."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise UsageError(
            f"--folder: cannot make {folder}: {problem.strerror}", "name another folder"
        ) from None
    for name in (REPORT, "comment.md", "badge.svg", *FILES.values()):
        (folder / name).unlink(missing_ok=True)
    return folder


def _initialize(session: Session, config: str) -> None:
    """Make the repository with this configuration, where there is none."""
    if not config:
        return
    top = top_of_git(session.cwd.resolve())
    if top is None:
        raise UsageError("--config: this is no git repository", "check the project out first")
    local = top / PERUN_FOLDER / "local.yml"
    try:
        text = regular.read_regular(session.cwd / config, LARGEST)
        there = regular.read_regular(local, LARGEST) if local.exists() else None
    except OSError as problem:
        raise UsageError(f"--config: cannot read {problem.filename}: {problem.strerror}") from None
    if there is None:
        init(top, session.environ, asks=session.ask_trust)
        atomic.write(local, text)
    elif there != text:
        raise UsageError(f"--config: there is another configuration: {local}", "leave out --config")


def _ends(
    session: Session, forge: Forge | None, base: str | None, head: str | None
) -> tuple[str | None, str | None]:
    """The versions that are compared: those that are named, else those of the job."""
    if forge is None or head is not None:
        return base, head
    repository = session.repository
    current = repository.version(None)
    named = base or forge.base(current)
    if not named:
        return None, current
    try:
        origin = repository.version(named)
    except VersionControlError as problem:
        if repository.vcs.missing_history():
            problem.hint = "the job has to fetch the whole history: fetch-depth: 0 (GitLab: GIT_DEPTH: 0)"
        raise
    return repository.vcs.merge_base(origin, current) or origin, current


def _base_of(report: VersionReport) -> str:
    return next((one.baseline_version.checksum for one in report.comparisons if one.baseline_version), "")


def _explained(
    session: Session, found: Gate, report: VersionReport, budget: float, *, suite: bool
) -> tuple[Gate, dict[str, tuple[str, int]]]:
    """With what explains the commands that got slower, and of these the file and line that does most."""
    versions = f"{found.base}..{found.head}"
    asked_of: dict[str, ExplainOptions] = {}
    for one in report.comparisons:
        head = one.target.head
        slow = [place for place in one.places if _is_slower(one, place)]
        if suite:  # one comparison of all benchmarks, whose names the places have
            slow.sort(key=lambda place: -place.rate_degradation)
            for name in dict.fromkeys(uid_in(place.location) for place in slow):
                asked_of[name] = ExplainOptions(versions, benchmark=name, harness=head.collector)
        elif slow:
            asked_of[command_of(one.target)] = ExplainOptions(
                versions, "", head.cmd, head.args, head.workload
            )
    budget /= min(len(asked_of), EXPLAINED) or 1
    why, unseen = found.why, ""
    places: dict[str, tuple[str, int]] = {}
    for command, options in list(asked_of.items())[:EXPLAINED]:
        asked = replace(options, budget=budget)
        try:
            with session.progress(0, "explaining") as bar:
                answer = explain(session.repository, plan(session.repository, asked), asked, bar.update)
            reasons = telling.reasons_of(answer)
            why += reasons
            known = [(one.path, one.line) for one in reasons if one.path and one.line]
            if known:
                places[command] = known[0]
            notes = [reason for case in answer.cases for reason in case.unseen]
            unseen = unseen or "; ".join(notes)
        except PerunError as problem:
            unseen = unseen or f"{problem.message}; {problem.hint}"
    unseen = "" if why else short(one_line(unseen))
    return msgspec.structs.replace(found, why=why, unseen=unseen), places


def _is_slower(comparison: Comparison, place: DegradationInfo) -> bool:
    return is_degradation(place.result) and place.location not in comparison.acknowledged


def _write(session: Session, folder: Path, found: Gate) -> None:
    """The small reports: gate, comment and badge; the summary of the step, and the annotations in the log."""
    text = telling.comment(found)
    atomic.write(folder / REPORT, written(found))
    atomic.write(folder / "comment.md", text.encode("utf-8", "replace"))
    atomic.write(folder / "badge.svg", telling.badge(found).encode())
    if summary := session.environ.get("GITHUB_STEP_SUMMARY"):
        with regular.open_for_writing(summary, append=True) as file:
            file.write(text.encode("utf-8", "replace"))
    if session.environ.get("GITHUB_ACTIONS"):
        for line in telling.workflow_commands(found):
            session.say(line)


def _notify(session: Session, command: str, found: Gate, subject: Subject | None = None) -> None:
    """Give the report to a command of the user; that this fails is told, and fails nothing."""
    if not command:
        return
    about = {
        "title": telling.title(found),
        "conclusion": telling.conclusion(found),
        "url": subject.url if subject else None,
        "pull_request": subject.number if subject else None,
        "commit": subject.head if subject else found.head,
    }
    data = msgspec.json.encode(msgspec.to_builtins(found) | about)
    shell = shutil.which("sh") or "/bin/sh"
    try:
        done = programs.run([shell, "-c", command], given=data, timeout=NOTIFY, environ=session.environ)
    except (OSError, programs.TimeoutExpired) as problem:
        session.warn(f"--notify: {problem}")
        return
    if done.code:
        said = clean(done.stderr.decode(errors="replace")).strip()
        session.warn(f"--notify: it ended with {done.code}{f': {said}' if said else ''}")
