"""All contracts between Perun and its plugins, built-in ones included.

A plugin is a class with the attributes and the one method of its protocol. It is constructed without
arguments, may be used more than once, prints nothing and knows nothing of the store or the configuration:
whatever it needs beyond its parameters arrives in its context.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TextIO, TypeVar

from perun.core.errors import NoProfile as NoProfile
from perun.core.process.command import Command as Command
from perun.core.process.command import Run as Run
from perun.plugin.interchange import Exporter as Exporter
from perun.plugin.interchange import ImportContext as ImportContext
from perun.plugin.interchange import Imported as Imported
from perun.plugin.interchange import Importer as Importer
from perun.plugin.interchange import ImportFile as ImportFile
from perun.plugin.suites import BenchmarkCommand as BenchmarkCommand
from perun.plugin.suites import BenchmarkRound as BenchmarkRound
from perun.plugin.suites import BenchmarkValue as BenchmarkValue
from perun.plugin.suites import Harness as Harness
from perun.plugin.suites import HarnessContext as HarnessContext
from perun.plugin.suites import NamedBenchmark as NamedBenchmark
from perun.plugin.suites import SuiteProgram as SuiteProgram
from perun.plugin.suites import ToolOutput as ToolOutput
from perun.plugin.versions import FileDiff as FileDiff
from perun.plugin.versions import KeptCopy as KeptCopy
from perun.plugin.versions import MajorVersion as MajorVersion
from perun.plugin.versions import MinorVersion as MinorVersion
from perun.plugin.versions import SavedState as SavedState
from perun.plugin.versions import Vcs as Vcs
from perun.plugin.versions import WorkingCopy as WorkingCopy
from perun.profile.changes import DegradationInfo

if TYPE_CHECKING:
    from random import Random

    from perun.measurement.estimate import Point
    from perun.measurement.series import SeriesName
    from perun.profile.factory import Profile

P_contra = TypeVar("P_contra", contravariant=True)
Report = Callable[[str, int, int], None]
"""Progress of a plugin: what it does now, steps done, steps in all (0 if not known)."""


def silent(activity: str, done: int, total: int) -> None:
    """A :data:`Report` that shows nothing."""


def quiet(text: str) -> None:
    """A note that is not passed on."""


class Workload(NamedTuple):
    """One generated input: what is passed to the command, and its size if the generator knows it.

    Where the workload is a file that the generator wrote into the folder of its context, `file` is its path;
    that is passed to the command then, and `value` is only its name.
    """

    value: str
    size: float | None = None
    file: Path | None = None


class GenerateContext(NamedTuple):
    """What a workload generator may use.

    `folder` is empty and for the files that it writes, which are moved elsewhere afterwards, names and all;
    `seed` decides whatever is random; a program that it runs is run in `cwd` with the environment `environ`.
    """

    folder: Path
    seed: int = 0
    cwd: Path = Path()
    environ: Mapping[str, str] = MappingProxyType({})


class Statistics(Protocol):
    """What a collector keeps of the version that it measures, and what was kept of earlier ones.

    A name is that of a file of statistics, as `perun stats` lists them; what is kept is an object of JSON.
    """

    def load(self, name: str) -> dict[str, Any] | None:
        """What is kept of the measured version; None if there is nothing, or it is damaged."""
        ...

    def save(self, name: str, values: Mapping[str, Any]) -> None:
        """Keep `values` of the measured version, in place of what was kept under that name."""
        ...

    def earlier(self, name: str, revision: str = "") -> tuple[str, dict[str, Any]] | None:
        """What is kept of the nearest ancestor that has any, with the version; None if none has.

        :param revision: look at this version instead, and at no other.
        :raises VersionControlError: if there is no such version.
        """
        ...

    def remove(self, name: str) -> None:
        """Forget what is kept of any version."""
        ...

    def profile(self, collector: str, cmd: str | None) -> Profile | None:
        """The newest profile that the collector made of the command, of any if that is None, of the measured
        version or of the nearest ancestor that has one; None if there is none."""
        ...


class Answer(NamedTuple):
    """What a collector tells the user besides the profile, or instead of it: text, and the same as JSON."""

    text: str
    data: Mapping[str, Any]


def unheard(answer: Answer) -> None:
    """An answer that is not passed on."""


class CollectContext(NamedTuple):
    """What a collector may use: a scratch folder that is removed afterwards, and a progress report.

    `note` tells the user one line, e.g. what the profile lacks and why; `cache` is a folder of the user for
    what later runs can use again, None if there is none; it may not exist yet. `logs` is the folder of the
    repository for what is kept about a run beside its profile; likewise. `statistics` is what is kept of
    versions, None outside of a repository. `answer` tells the user what he asked for beside the profile.
    """

    scratch: Path
    report: Report = silent
    note: Callable[[str], None] = quiet
    cache: Path | None = None
    logs: Path | None = None
    statistics: Statistics | None = None
    answer: Callable[[Answer], None] = unheard


class PostprocessContext(NamedTuple):
    """What a postprocessor may use: a progress report, and a way to tell the user one line, e.g. which
    fields of the profile it has chosen, or of which uid it could make no model and why."""

    report: Report = silent
    note: Callable[[str], None] = quiet


NO_POSTPROCESS_CONTEXT = PostprocessContext()
"""The context of a postprocessor whose progress and notes nobody reads."""


def _none_kept() -> Statistics | None:
    return None


def _no_text(path: str) -> str | None:
    return None


class ViewContext(NamedTuple):
    """What a view may use beyond its profile.

    `note` passes on one line that is no part of the answer, e.g. that it cannot open a browser;
    `load(spec)` returns another profile, named by a tag, a name or a path. `columns` is the width of the
    terminal that the answer goes to, 0 if it is none; `coloured` tells whether it may have colours.
    `statistics()` is what is kept of the version of the profile and of earlier ones, None if that is not
    known. `source(path)` is the text of a file, named as in the profile, at the version of the profile; None
    where that is not known.
    """

    note: Callable[[str], None] = quiet
    load: Callable[[str], Profile] | None = None
    columns: int = 0
    coloured: bool = False
    statistics: Callable[[], Statistics | None] = _none_kept
    source: Callable[[str], str | None] = _no_text


NO_VIEW_CONTEXT = ViewContext()
"""The context of a view that writes to no terminal and loads no other profile."""


def _uncached(profile: Profile, make: Callable[[Profile], Any]) -> Any:
    return make(profile)


def _no_line(name: SeriesName) -> Sequence[Point]:
    return ()


def _not_again() -> bool:
    return False


def _not_both(name: SeriesName) -> None:
    return None


class CheckContext(NamedTuple):
    """What a check may use beyond the two profiles.

    `settings` are the values of `degradation.*` in the configuration; `models_type` is the value of
    `check --models-type`, empty if not given; `postprocess(profile, name, params)` returns the profile
    processed by another plugin.

    `cached(profile, make)` returns `make(profile)`, and keeps it for other comparisons of the profile: in a
    history it is first the target, then a baseline. `make` is a function of a module; its result must not be
    changed.

    `line(name)` gives the points of a series at the ancestors of the target that have one, the nearest first,
    as far as they are known; see :func:`perun.measurement.verdict.along`. `both(name)` gives the points of
    all profiles of both versions; None where that is not known. `again()` says whether a version after both
    has seen the same as the newer one, which is the baseline where they are `turned`.
    """

    settings: Mapping[str, Any] = MappingProxyType({})
    models_type: str = ""
    postprocess: Callable[[Profile, str, Mapping[str, Any]], Profile] | None = None
    cached: Callable[[Profile, Callable[[Profile], Any]], Any] = _uncached
    line: Callable[[SeriesName], Sequence[Point]] = _no_line
    both: Callable[[SeriesName], tuple[Point, Point] | None] = _not_both
    again: Callable[[], bool] = _not_again
    turned: bool = False


class Interrupted(KeyboardInterrupt):
    """A collector was interrupted and kept what it had collected until then.

    It is raised from the exception that interrupted it, which goes on its way once the profile is saved: an
    interruption ends the batch, whatever the collector. One that keeps nothing lets the exception pass.

    :ivar profile: what was collected; it says that it is incomplete.
    """

    def __init__(self, profile: Profile) -> None:
        super().__init__()
        self.profile = profile


class Plugin(Protocol):
    """What every plugin has: the name it is called by, its parameters, and a one-line description.

    `Params` is a frozen dataclass whose fields are declared with :func:`perun.plugin.params.param`. The
    options on the command line are made from it; a plugin whose options are odd has an attribute `command`
    besides: a click command, or where to import it from as `"package.module:name"`. That command finds the
    profile of `show` and `postprocessby` in `ctx.obj.profile`, and calls `ctx.obj.render(name, params)`,
    `ctx.obj.run_collector(name, params)` or `ctx.obj.run_postprocessor(profile, name, params)`.
    """

    name: ClassVar[str]
    help: ClassVar[str]
    Params: ClassVar[type]


class Collector(Plugin, Protocol[P_contra]):
    """Measures one run. `collect` returns a profile with `header.type`, `header.units` and resources.

    Where the profile lacks a part of the run it says so by :func:`perun.profile.incomplete.mark`: the command
    was killed or stopped by a time limit, events were lost. Such a profile is kept, does not count as done,
    and is not compared unless the user insists. Where the user interrupts the run, the collector lets the
    exception pass, or raises :class:`Interrupted` with what it has collected.

    Of what it measures less is better. The uids, types, subtypes or units of which more is better, as of a
    throughput, it lists in `header.larger_is_better`; verdicts on these are mirrored.

    One that runs no command, as it looks at sources, has the attribute `without_command = True`, and may
    have a method `subject(params) -> str`, which names what it looks at: that stands in the profile in place
    of the command, and the job matrix has one job of it, however many commands there are.

    It raises :class:`~perun.core.errors.CollectorUnavailable` before the workload starts if it cannot run
    here, and :class:`~perun.core.errors.JobFailed` if the measured command fails.
    """

    def collect(self, run: Run, params: P_contra, ctx: CollectContext) -> Profile:
        """Measure `run`."""
        ...


class Readiness(NamedTuple):
    """Whether a plugin, or a part of it as an engine of a collector, can run here; for `perun doctor`.

    A plugin may have a method `readiness(environ) -> Iterable[Readiness]`; one that has none can run
    everywhere. `part` names the part, or is empty for the plugin as a whole. `missing` says what lacks,
    and is empty if nothing does; `hint` says what installs it.
    """

    part: str = ""
    missing: str = ""
    hint: str = ""


class Postprocessor(Plugin, Protocol[P_contra]):
    """Turns a profile into another one; the given profile may be changed and returned.

    It raises :class:`~perun.core.errors.ProfileError` if the profile has not what it needs. Where it can make
    no model of one uid it tells so by `ctx.note` and goes on.
    """

    def process(self, profile: Profile, params: P_contra, ctx: PostprocessContext) -> Profile:
        """Process `profile`."""
        ...


class View(Plugin, Protocol[P_contra]):
    """Writes an interpretation of a profile to `out`, or to a file that its parameters name; then `out`
    gets the name of the file.

    A view that needs no context may leave out the last argument of `render`.
    """

    def render(
        self, profile: Profile, params: P_contra, out: TextIO, ctx: ViewContext = NO_VIEW_CONTEXT
    ) -> None:
        """Write the interpretation."""
        ...


class Check(Plugin, Protocol[P_contra]):
    """Compares the profile of a target version with its baseline. `short` is its short string, e.g. AAT.

    What it reports is mirrored where more of a location is better (`header.larger_is_better`), unless it does
    so itself and has the attribute `knows_larger_is_better = True`. What the reader has to know of all that
    it reports are the texts of its attribute `notes`, if it has one.
    """

    short: ClassVar[str]

    def compare(
        self, baseline: Profile, target: Profile, params: P_contra, ctx: CheckContext
    ) -> Iterable[DegradationInfo]:
        """Yield what changed, unchanged locations as No Change.

        :raises ProfileError: if a profile has not what the method needs, e.g. models; the hint says what
            makes it. The other methods are applied nevertheless.
        """
        ...


class WorkloadGenerator(Plugin, Protocol[P_contra]):
    """Yields workloads, the same ones for the same parameters and seed, whatever else is generated.

    A range that cannot be is refused by `Params`, in `__post_init__` with a :class:`ValueError`.
    """

    def generate(self, params: P_contra, ctx: GenerateContext) -> Iterator[Workload]:
        """Yield the workloads, in the order in which they are measured.

        :raises PerunError: if it cannot generate them here.
        """
        ...


class FuzzRule(NamedTuple):
    """A way to change inputs of `perun fuzz`: a label that no other rule has, and one line that describes it.

    `apply(data, random, corpus)` returns the new input, None if it has nothing to change in this one. All
    that is random in it comes from `random`; `corpus` are other inputs. It runs in each process of the
    fuzzer.
    """

    label: str
    description: str
    apply: Callable[[bytes, Random, Sequence[bytes]], bytes | None]


class FuzzRules(Protocol):
    """Rules for one type of files, which an entry point of the group `perun.fuzz_rules` names.

    They are used beside those of Perun for text or binary files.
    """

    def accepts(self, seed: bytes, path: Path) -> bool:
        """Whether a file with this content and path is of the type."""
        ...

    def rules(self) -> Sequence[FuzzRule]:
        """The rules."""
        ...
