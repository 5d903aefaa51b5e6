"""Bounds collector: how often each loop of C sources can run, from the source alone (manual 4.1.4)."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from perun.bounds import cache
from perun.bounds.answer import FunctionBounds, Gap, SourceBounds, merged
from perun.bounds.sources import BoundsParams, sources_of
from perun.bounds.workers import MAX_WORKERS, AnalysisProgress, AnalysisTask, Setup, analysed
from perun.collect._common.runs import new_profile
from perun.core.errors import CollectorUnavailable, JobFailed
from perun.core.extras import install_command
from perun.core.machine import usable_processors
from perun.core.wording import plural
from perun.plugin.api import CollectContext, Readiness, Run
from perun.plugin.params import to_mapping
from perun.profile.bounds import LOCAL, REGION, TOTAL, TYPE
from perun.profile.factory import Profile

# The resources of a profile of bounds, as the manual's 4.1.4 has them.


def resources(sources: Iterable[SourceBounds]) -> Iterator[dict[str, Any]]:
    """A resource for each loop, and one for each function, all of which have persistent properties only.

    The `line` and `column` of a loop are the lines where it begins and ends, 1-based; those of a function are
    line and column of its name, 0-based.
    """
    for source in sources:
        for function in source.functions:
            yield from _of_function(source.path, function)


def unread(sources: Iterable[SourceBounds]) -> list[dict[str, Any]]:
    """What could not be read, as the region of the profile says it."""
    return [
        {"source": source.path, "line": gap.line, "function": gap.function, "reason": gap.reason}
        | ({"header": gap.header} if gap.header else {})
        for source in sources
        for gap in source.gaps
    ]


def _of_function(source: str, function: FunctionBounds) -> Iterator[dict[str, Any]]:
    for loop in function.loops:
        yield _resource(
            source, function.name, (loop.first_line, loop.last_line), LOCAL, loop.bound, loop.cls, loop.reason
        )
    place = function.line, function.column
    yield _resource(source, function.name, place, TOTAL, function.bound, function.cls, function.reason)


def _resource(
    source: str,
    function: str,
    place: tuple[int, int],
    subtype: str,
    bound: str,
    growth: str,
    reason: str | None,
) -> dict[str, Any]:
    line, column = place
    uid = {"source": source, "function": function, "line": line, "column": column}
    made = {"uid": uid, "type": TYPE, "subtype": subtype, "bound": bound, "class": growth}
    return {**made, "reason": reason} if reason else made


# The collector of bounds: analyses C sources, of which nothing is built and nothing runs.

COLLECTOR_TYPE: Final = "bound"
COLLECTOR_DEFAULT_UNITS: Final = {"bound": "iterations"}
LIBRARIES: Final = ("pycparser", "z3")
"""Modules of the extra `bounds`."""
COMPILERS: Final = ("cc", "gcc", "clang")
"""Programs one of which preprocesses the sources."""
LARGE: Final = 32 << 10
"""Bytes of a source from which on several processes share its functions."""
_NOTES: Final = 10
"""Parts of sources that could not be read which the terminal names; the profile has them all."""


class BoundsCollector:
    """Finds for each loop and function of C sources how often it iterates at most, as a formula.

    Nothing is built and nothing runs, so no command is needed. A bound holds for all inputs under assumptions
    that docs/bounds.md lists; where none is found the bound is `inf`, its class is O(∞), and the profile has
    the reason.
    """

    name: ClassVar[str] = "bounds"
    help: ClassVar[str] = (
        "Generates `bound` performance profile, with upper bounds on the iterations of loops in C sources."
    )
    Params: ClassVar[type] = BoundsParams
    without_command: ClassVar[bool] = True

    def subject(self, params: BoundsParams) -> str:
        """What is analysed, which stands in profiles where others have their command."""
        return " ".join((*params.source, *params.source_dir)) or params.compile_commands

    def readiness(self, environ: Mapping[str, str]) -> Iterator[Readiness]:
        """Whether the libraries and the preprocessor are there."""
        yield Readiness("", *_missing(environ))

    def collect(self, run: Run, params: BoundsParams, ctx: CollectContext) -> Profile:
        """Analyse the sources in the folder of the run.

        :raises CollectorUnavailable: where a library or the preprocessor is missing.
        :raises JobFailed: where a source or a function does not exist, or nothing could be read.
        """
        lacks, hint = _missing(run.environ)
        if lacks:
            raise CollectorUnavailable(lacks, hint)
        paths = sources_of(params, run.cwd)
        found = _analysed(paths, params, run, ctx)
        _require_functions(params.function, found)
        _tell(found, ctx)
        profile = new_profile(run, COLLECTOR_TYPE, COLLECTOR_DEFAULT_UNITS, self.name, to_mapping(params))
        profile[REGION] = {
            "sources": paths,
            "analysis": cache.analysis_version(),
            "unreadable": unread(found),
        }
        profile.update_resources(resources(found))
        return profile


def _missing(environ: Mapping[str, str]) -> tuple[str, str]:
    """What lacks for the analysis, and how it is installed; empty texts if nothing does."""
    lacking = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]
    if lacking:
        names = " and ".join(name.replace("z3", "z3-solver") for name in lacking)
        verb = "are" if len(lacking) > 1 else "is"
        return f"{names} {verb} not installed", f"install what it needs with: {install_command('bounds')}"
    if not any(shutil.which(name, path=environ.get("PATH")) for name in COMPILERS):
        return (
            "no C compiler is installed, whose preprocessor reads the sources",
            "install one, e.g.: apt-get install gcc",
        )
    return "", ""


def _analysed(
    paths: Sequence[str], params: BoundsParams, run: Run, ctx: CollectContext
) -> list[SourceBounds]:
    """What is found of each source, in their order."""
    processes = min(usable_processors(), MAX_WORKERS)
    tasks = [task for path in paths for task in _tasks(path, run.cwd, processes, len(paths))]
    folder = ctx.cache
    parts: dict[str, list[SourceBounds]] = {path: [] for path in paths}
    needed = {path: sum(task.path == path for task in tasks) for path in paths}
    done = 0
    ctx.report("reading sources", 0, len(paths))
    for task, answer in analysed(tasks, Setup(params, folder), run.cwd, run.environ, processes):
        if isinstance(answer, AnalysisProgress):
            if answer.bounds is None:
                ctx.report(f"analysing {answer.function} of {task.path}", done, len(paths))
            continue
        several = parts[task.path]
        several.append(answer)
        if len(several) == needed[task.path]:
            parts[task.path] = [merged(several)]
            cache.write(folder, parts[task.path][0])
            done += 1
            ctx.report(f"analysed {task.path}", done, len(paths))
    cache.prune(folder)
    return [merged(several) for several in parts.values()]


def _tasks(path: str, folder: Path, processes: int, sources: int) -> list[AnalysisTask]:
    """A source as one task; a large one as several, where there are more processors than sources."""
    share = processes // sources
    if share < 2 or (folder / path).stat().st_size < LARGE:
        return [AnalysisTask(path)]
    return [AnalysisTask(path, part, share) for part in range(share)]


def _require_functions(wanted: Sequence[str], found: Sequence[SourceBounds]) -> None:
    names = {function.name for source in found for function in source.functions}
    lacking = [name for name in wanted if name not in names]
    if lacking and len(lacking) == len(wanted):
        what = f"none of the {len(found)} sources" if len(found) > 1 else found[0].path
        raise JobFailed(f"{what} defines no function {lacking[0]!r}", "without --function all are analysed")


def _tell(found: Sequence[SourceBounds], ctx: CollectContext) -> None:
    """Tell the user what could not be read, each with its place.

    :raises JobFailed: where no function of any source could be read.
    """
    gaps = list(dict.fromkeys(_told(source.path, gap) for source in found for gap in source.gaps))
    if gaps and not any(source.functions for source in found):
        raise JobFailed("no function could be read:\n" + "\n".join(gaps[:_NOTES]))
    for gap in gaps[:_NOTES]:
        ctx.note(gap)
    if len(gaps) > _NOTES:
        left = plural(len(gaps) - _NOTES, "more part")
        ctx.note(f"{left} of the sources could not be read; the profile lists all")


def _told(path: str, gap: Gap) -> str:
    consequence = f"; {gap.function} is not analysed" if gap.function else ""
    return f"{gap.header or path}:{gap.line}: {gap.reason}{consequence}"


PLUGIN = BoundsCollector
