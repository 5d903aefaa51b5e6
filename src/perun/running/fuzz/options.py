"""What the user of `perun fuzz` asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.core.errors import ProfileError, UsageError
from perun.fuzz.coverage.inputs import CompilerFlags, build
from perun.fuzz.mutating import DEFAULT, SizeLimit
from perun.plugin.api import MinorVersion, Report
from perun.repository import marks
from perun.repository.copies import refuse_after_interruption, remove_leftovers, scratch_folder
from perun.repository.repository import Repository
from perun.repository.trust import Brought, RunnableItem
from perun.running.compare.plan import CompareSide, prepared
from perun.running.run import pre_run

BACKENDS: Final = ("auto", "gcov", "sancov")
INPUTS: Final = ("file", "stdin", "argument")
SECONDS: Final = 1800.0
HANG: Final = 10.0
GATHERING: Final = 100
INTERESTING: Final = 20
RATE: Final = 1.5
CHECK: Final = "hodges_lehmann_ratio"
NO_LIMIT: Final = SizeLimit()
MINIMIZED: Final = 10
"""Results that are minimised."""


@dataclass(frozen=True)
class FuzzOptions:
    """How to fuzz; the manual's section 10.3.1 says more.

    :ivar cmd: the program with its first arguments, :ivar args: the others; `@@` in them is the input.
    :ivar samples: files and folders of seeds. :ivar output: the folder of results, absolute.
    :ivar collector: and :ivar postprocessors: with their parameters, to measure what was found.
    :ivar checks: methods that judge these measurements. :ivar minor: the version; None for the working
        directory as it is. :ivar filter: a regular expression for paths of seeds.
    :ivar coverage: False for `--skip-coverage-testing`. :ivar source: and :ivar gcno: folders.
    :ivar seconds: for everything. :ivar hang: seconds. :ivar executions: at most.
    :ivar gathering: executions, and :ivar interesting: inputs between tests.
    :ivar rate: threshold of the coverage. :ivar strategy: of mutations per rule.
    :ivar regex_rules: a YAML file; :ivar dictionary: a file of words.
    :ivar build: a command that builds the instrumented program; `{flags}` and `{cc}` in it are filled in.
    :ivar seed: of the random numbers; None for another one each time. :ivar jobs: processes.
    :ivar minimize: how many of the results; 0 for none. :ivar plotting: draw graphs.
    """

    cmd: str
    args: str
    samples: tuple[str, ...]
    output: Path
    collector: str = "time"
    collector_params: Mapping[str, Any] = field(default_factory=dict)
    postprocessors: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    checks: tuple[str, ...] = (CHECK,)
    minor: str | None = None
    filter: str = ""
    coverage: bool = True
    source: str = ""
    gcno: str = ""
    seconds: float = SECONDS
    hang: float = HANG
    executions: int | None = None
    size: SizeLimit = NO_LIMIT
    gathering: int = GATHERING
    interesting: int = INTERESTING
    rate: float = RATE
    strategy: str = DEFAULT
    regex_rules: str = ""
    dictionary: str = ""
    backend: str = BACKENDS[0]
    input: str = INPUTS[0]
    build: str = ""
    seed: int | None = None
    jobs: int = 1
    minimize: int = MINIMIZED
    plotting: bool = True
    ignore_failure: bool = False

    def check(self) -> None:
        """:raises UsageError: where something lacks, or options contradict each other."""
        for option, value in (("--cmd (-b)", self.cmd), ("--input-sample (-w)", self.samples)):
            if not value:
                raise UsageError(f"{option} is missing", "e.g. perun fuzz -b ./prog -w seeds -o results")
        self.size.check()
        if self.build and not self.coverage:
            raise UsageError(
                "--build builds for coverage, which --skip-coverage-testing does without", "give one of them"
            )

    def as_settings(self) -> dict[str, Any]:
        """All of it as JSON values, for the results and for `--resume`."""
        found = {name: value for name, value in asdict(self).items() if name != "size"}
        return {**found, "output": str(self.output), "size": list(self.size)}


_KIND: Final = "fuzz"


def marked(repo: Repository, options: FuzzOptions) -> dict[str, Any]:
    """The options as JSON values, with the mark of the user, so that what they run is known as his own."""
    settings = options.as_settings()
    return {**settings, marks.FIELD: marks.mark(repo.root, repo.environ, _KIND, _anywhere(settings))}


def trusted(repo: Repository, folder: Path, settings: Mapping[str, Any], doing: str) -> FuzzOptions:
    """The options of a campaign, if the user has begun it himself or trusts what it runs.

    :param settings: as :func:`marked` wrote them into a file of `folder`, which anybody may have brought.
    :param doing: what would run it.
    :raises ProfileError: if they are none. :raises NotTrusted: if he has not said that he trusts it.
    """
    try:
        options = replace(of_settings(settings), output=folder)
        runs = tuple(_runs(options))
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise ProfileError(
            f"{folder} holds no campaign: its settings cannot be read: {problem}",
            "give the folder that perun fuzz --output-dir wrote",
        ) from None
    own = _anywhere({key: value for key, value in settings.items() if key != marks.FIELD})
    brought = None
    if not marks.holds(repo.root, repo.environ, _KIND, own, settings.get(marks.FIELD)):
        brought = Brought(str(folder), runs, own)
    repo.require_trust(doing, brought)
    return options


def _anywhere(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Without the folder, which may be moved."""
    return {key: value for key, value in settings.items() if key != "output"}


def _runs(options: FuzzOptions) -> Iterator[RunnableItem]:
    yield RunnableItem("cmd", f"{options.cmd} {options.args}".strip())
    if options.build:
        yield RunnableItem("build", str(options.build))
    for name, params in ((options.collector, options.collector_params), *options.postprocessors):
        yield RunnableItem("collector, postprocessor", f"{name} {params or ''}".rstrip())


def of_settings(settings: Mapping[str, Any]) -> FuzzOptions:
    """The options that :meth:`FuzzOptions.as_settings` wrote."""
    known = {one.name for one in fields(FuzzOptions)}
    values = {name: value for name, value in settings.items() if name in known}
    pairs: Sequence[tuple[str, Mapping[str, Any]]] = [tuple(one) for one in values["postprocessors"]]
    values |= {
        "output": Path(values["output"]),
        "samples": tuple(values["samples"]),
        "checks": tuple(values["checks"]),
        "postprocessors": tuple(pairs),
        "size": SizeLimit(*values["size"]),
    }
    return FuzzOptions(**values)


# Where the fuzzed program is: the working directory as it is, or a copy of a version that is built there.
#
# With `--build` there are two copies, one that counts and one as users build it, which is measured: counting
# takes its time, and not everywhere the same.

PLAIN: Final = CompilerFlags("-O2 -g", "cc", "c++")
"""What the program that is measured is built with."""


class FuzzFolders(NamedTuple):
    """The folders of the program that counts and of the one that is measured, often the same; the version,
    and whether there are changes that it does not have; a folder for temporary files."""

    counting: Path
    measured: Path
    version: MinorVersion
    uncommitted: bool
    scratch: Path
    environ: Mapping[str, str]


@contextmanager
def entered(repo: Repository, options: FuzzOptions, report: Report) -> Iterator[FuzzFolders]:
    """The place of the program, built; copies are removed at the end.

    :raises PerunError: where the version cannot be checked out or built.
    """
    version = repo.vcs.get_minor_version_info(repo.version(options.minor))
    environ = pre_run.environment(repo)
    with ExitStack() as stack:
        if options.build or options.minor is not None:
            changed = () if options.minor is not None else tuple(repo.vcs.changed_files())
            side = CompareSide("head", version, changed)
            copies = stack.enter_context(prepared(repo, [side], 2 if options.build else 1, report))["head"]
            if options.build:
                report("building", 0, 0)
                backend: Any = options.backend
                build(options.build, backend, copies[0], environ)
                build(options.build, backend, copies[-1], environ, PLAIN)
            counting, measured, uncommitted = copies[0], copies[-1], bool(changed)
        else:
            refuse_after_interruption(repo)
            remove_leftovers(repo)
            uncommitted = repo.vcs.is_dirty()
            report("preparing", 0, 0)
            state = version.checksum + "-uncommitted" * uncommitted
            pre_run.run_commands(repo, state, repo.working_root)
            counting = measured = repo.working_root
        scratch = stack.enter_context(scratch_folder(repo))
        yield FuzzFolders(counting, measured, version, uncommitted, scratch, environ)
