"""All contracts between Perun and its plugins, built-in ones included.

A plugin is a class with the attributes and the one method of its protocol. It is constructed without
arguments, may be used more than once, prints nothing and knows nothing of the store or the configuration:
whatever it needs beyond its parameters arrives in its context.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TextIO, TypeVar

from perun.core.process.command import Command as Command
from perun.core.process.command import Run as Run
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


class NoProfile(Exception):
    """A collector was asked for something else than a profile, and has told it by `ctx.answer`."""


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


class ViewContext(NamedTuple):
    """What a view may use beyond its profile.

    `note` passes on one line that is no part of the answer, e.g. that it cannot open a browser;
    `load(spec)` returns another profile, named by a tag, a name or a path. `columns` is the width of the
    terminal that the answer goes to, 0 if it is none; `coloured` tells whether it may have colours.
    `statistics()` is what is kept of the version of the profile and of earlier ones, None if that is not
    known.
    """

    note: Callable[[str], None] = quiet
    load: Callable[[str], Profile] | None = None
    columns: int = 0
    coloured: bool = False
    statistics: Callable[[], Statistics | None] = _none_kept


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


class MinorVersion(NamedTuple):
    """One version of the project (manual 13.1.1). `date` is `YYYY-MM-DD HH:MM:SS` of the commit, in UTC."""

    date: str
    author: str
    email: str
    checksum: str
    desc: str
    parents: tuple[str, ...]

    @property
    def subject(self) -> str:
        """The first line of the description."""
        return self.desc.partition("\n")[0]


class SavedState(NamedTuple):
    """What was put aside: whether there was anything, where HEAD was, what the changes can be found by."""

    saved: bool
    state: str
    stash: str = ""


class MajorVersion(NamedTuple):
    """One line of development: its name (a branch) and its newest minor version."""

    name: str
    head: str


class Vcs(ABC):
    """A version control system as Perun needs it (manual 13.1.1); versions are named by full checksums.

    All methods raise :class:`~perun.core.errors.VersionControlError` if the system refuses.

    :param root: folder of the wrapped repository (`vcs.url`).
    :param environ: environment for the commands that the implementation runs.
    """

    type: ClassVar[str]

    def __init__(self, root: Path, environ: Mapping[str, str]) -> None:
        self.root = root
        self.environ = environ

    @abstractmethod
    def init(self, params: Mapping[str, Any]) -> bool:
        """Initialise or reinitialise the system at `root`; flags are keys whose value is True."""

    @abstractmethod
    def walk_minor_versions(self, head: str) -> Iterator[MinorVersion]:
        """All ancestors of `head`, itself first, newest first, as a stream."""

    @abstractmethod
    def walk_major_versions(self) -> Iterator[MajorVersion]:
        """All lines of development."""

    @abstractmethod
    def get_minor_head(self) -> str:
        """Checksum of the current version; an error if there is none yet."""

    @abstractmethod
    def get_head_major_version(self) -> str:
        """Name of the current line of development; if HEAD is detached, its checksum."""

    @abstractmethod
    def get_minor_version_info(self, minor_version: str) -> MinorVersion:
        """The given version."""

    @abstractmethod
    def check_minor_version_validity(self, minor_version: str) -> None:
        """Raise unless the full checksum names a version."""

    @abstractmethod
    def massage_parameter(self, parameter: str, parameter_type: str | None = None) -> str:
        """The full checksum for any spelling that the system knows (HEAD~1, a tag, a prefix)."""

    @abstractmethod
    def is_dirty(self) -> bool:
        """Whether tracked files differ from the current version, staged or not."""

    @abstractmethod
    def save_state(self) -> tuple[bool, str]:
        """Put uncommitted changes aside; whether there were any, and where HEAD was."""

    @abstractmethod
    def restore_state(self, saved: bool, state: str) -> None:
        """Go back to `state` and reapply what :meth:`save_state` put aside."""

    @abstractmethod
    def checkout(self, minor_version: str) -> None:
        """Make the working directory that of the given version, losing nothing of the user's."""

    def prepare_save(self) -> SavedState:
        """First half of :meth:`save_state`, after which nothing of the user's can be lost any more.

        A system that can make a copy of uncommitted changes without touching them does so here; the others
        put them aside now.
        """
        return SavedState(*self.save_state())

    def finish_save(self, saved: SavedState) -> None:  # noqa: B027  # nothing is left to do by default
        """Second half of :meth:`save_state`: take out what :meth:`prepare_save` made a copy of."""

    def resume(self, saved: SavedState) -> None:
        """As :meth:`restore_state`; also in another process than the one that saved, whatever that did."""
        self.restore_state(saved.saved, saved.state)

    def walk_subjects(self, head: str, *, ordered: bool = False) -> Iterator[MinorVersion]:
        """As :meth:`walk_minor_versions`, but `desc` may hold the subject alone; fast on long histories.

        :param ordered: children strictly before their parents, also if clocks disagreed; the system may
            have to see the whole history before the first version comes.
        """
        return self.walk_minor_versions(head)

    def walk_together(self, heads: Sequence[str]) -> Iterator[MinorVersion]:
        """What :meth:`walk_subjects` gives of the heads, each version once, in no certain order."""
        seen: set[str] = set()
        for head in heads:
            for version in self.walk_subjects(head) if head not in seen else ():
                if version.checksum not in seen:
                    seen.add(version.checksum)
                    yield version

    def merge_base(self, first: str, second: str) -> str | None:
        """The newest version that both come from, or one of them; None where they share no history."""
        theirs = {version.checksum for version in self.walk_subjects(second)}
        ours = (version.checksum for version in self.walk_subjects(first, ordered=True))
        return next((one for one in ours if one in theirs), None)

    def changed_files(self) -> list[str]:
        """The paths of files that differ from the current version, relative to `root`.

        These are changed, new and deleted ones, staged or not, and untracked ones that are not ignored.
        """
        return []

    def snapshot(self, name: str, message: str = "") -> str:
        """Make a version of the working directory as it is, for `perun tag`; its full checksum.

        :raises VersionControlError: if versions are made by commands of the system's own, as by default.
        """
        from perun.core.errors import VersionControlError

        raise VersionControlError(
            f"perun tag cannot make versions of {self.type}", f"make them with the commands of {self.type}"
        )

    def tags(self) -> list[tuple[str, str]]:
        """The names of tags, each with the checksum of its version; none where the system has none."""
        return []

    def missing_history(self) -> str:
        """Why older versions are not here, and how to get them; empty if the history is whole."""
        return ""

    def missing_tags(self) -> str:
        """Why tags of versions that are here may be missing, and how to get them; empty if none is."""
        return ""

    def difference(self, first: str, second: str) -> list[FileDiff] | None:
        """What the second version has in place of the first one; None where the system cannot tell."""
        return None

    def source(self, minor_version: str, path: str) -> bytes | None:
        """The content of a file of a version; None where there is none, or the system cannot tell.

        :param path: relative to the top of the repository, as of :meth:`difference`.
        """
        return None

    def files(self, minor_version: str) -> list[str]:
        """The paths of all files of a version, as of :meth:`difference`; none where it cannot tell."""
        return []

    def working_copy(self, folder: Path) -> WorkingCopy:
        """A second working directory at `folder` that does not touch the user's.

        :raises VersionControlError: if the system has no such thing; use `--in-place` then.
        """
        from perun.core.errors import VersionControlError

        raise VersionControlError(
            f"{self.type} cannot measure other versions beside the working directory",
            "use --in-place to check them out in the working directory itself",
        )

    def content(self, minor_version: str) -> str:
        """What decides which files a working copy of the version has; versions may share it."""
        return minor_version

    def kept_copy(self, folder: Path, scratch: Path) -> KeptCopy | None:
        """A working copy in `folder/tree` that later processes use; None where the system has no such thing.

        :param scratch: a folder that is used for a moment, as that of :meth:`working_copy`.
        """
        return None


class FileDiff(NamedTuple):
    """What two versions differ by in one file.

    :param old: and :param new: its path in either version, relative to the top of the repository; empty
        where it is not there. :param patch: the hunks as `git diff` writes them; empty of a binary file, or
        of one that is too large.
    """

    old: str
    new: str
    patch: str


class WorkingCopy(Protocol):
    """A working directory of Perun's own; a context manager that removes it at the end."""

    def switch(self, minor_version: str) -> Path:
        """Make it that version, without left-overs of the one before; the folder to run in."""

    def __enter__(self) -> WorkingCopy: ...

    def __exit__(self, *exc: object) -> None: ...


class KeptCopy(Protocol):
    """A working copy that is there until its folder is removed, of which nothing is noted anywhere else."""

    def make(self, minor_version: str) -> Path:
        """Check the version out where nothing is yet; the folder to run in."""

    def renew(self, minor_version: str) -> Path:
        """Have the system tell in it that it is that version, whose :meth:`Vcs.content` it was made with.

        No file of the version is touched.

        :raises VersionControlError: if what the system notes of it is damaged.
        """


FAMILIES: Mapping[str, str] = {
    "collect": "collector",
    "postprocess": "postprocessor",
    "view": "view",
    "check": "check",
    "workload": "workload generator",
    "vcs": "version control system",
}
"""Families of plugins: the folder (and package) that holds them, and what one of them is called."""
