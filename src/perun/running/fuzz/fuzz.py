"""`perun fuzz`: the search of :mod:`perun.fuzz`, in a version of the project, with collectors and checks.

`options` say what the user asks for, where the program is and how it is built; `testing` measures
what was found beside its seed, `fuzz` does it all and returns the results.
"""

from __future__ import annotations

import contextlib
import random
import secrets
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from itertools import islice, takewhile
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

from perun.core.errors import ProfileError, Terminated
from perun.core.process.command import split
from perun.fuzz import folder as folders
from perun.fuzz import pages, results, rules, seeds
from perun.fuzz.after import understand
from perun.fuzz.campaign import Campaign
from perun.fuzz.coverage.api import Coverage, CoverageTarget
from perun.fuzz.coverage.opening import open_coverage
from perun.fuzz.executing import Executor, NullExecutor, Pool, SerialExecutor
from perun.fuzz.findings import BEGAN, FORMAT, CampaignJournal, Event, JournalLine
from perun.fuzz.findings import read as read_journal
from perun.fuzz.seeds import SearchSettings, SeedFile
from perun.plugin.api import Report, silent
from perun.repository.repository import Repository
from perun.running.fuzz.options import FuzzFolders, FuzzOptions, entered, marked, trusted
from perun.running.fuzz.testing import Tester

# Ctrl-C ends a search, never the writing of its results.

Handler = Callable[[int, FrameType | None], Any]

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class OneInterruption:
    """A context manager in which the first signal that ends Perun does what it always does, and no further
    one.

    So what follows the first one, which is writing down what there is, is not interrupted. Outside of the
    main thread it does nothing, as no signal arrives there.
    """

    def __init__(self) -> None:
        self._arrived = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> OneInterruption:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                handler = signal.getsignal(number)
                if callable(handler):
                    self._before[number] = handler
                    signal.signal(number, self._handler(handler))
        return self

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def hold_back(self) -> None:
        """From now on no signal interrupts."""
        self._arrived = True

    def _handler(self, before: Handler) -> Handler:
        def handle(number: int, frame: FrameType | None) -> None:
            if not self._arrived:
                self._arrived = True
                before(number, frame)

        return handle


# What counts the executions of the fuzzed program, and how it is built for that.


def coverage_of(options: FuzzOptions, place: FuzzFolders, suffix: str, name: str) -> Callable[[], Coverage]:
    """What makes the coverage of one process, not started yet.

    :param suffix: how names of input files end. :param name: of its folder for temporary files.
    """
    argv = tuple(split("command", f"{options.cmd} {options.args}"))
    way: Any = options.input
    target = CoverageTarget(argv, way, place.counting, dict(place.environ), suffix)
    notes = [place.counting / one for one in (options.gcno, options.source) if one]
    scratch = place.scratch / name
    scratch.mkdir()
    backend: Any = options.backend
    return partial(open_coverage, target, scratch, backend, notes=notes)


# `perun fuzz`: find inputs that make the program slow, measure them, and write the folder of results.

Watch = Callable[[Event], None]

_FOR_TESTS: Final = (0.1, 60.0)
"""Share of the time that is kept for measuring at the end, and seconds of it at most."""
_FOR_ALL_TESTS: Final = (0.2, 180.0)
"""... where nothing is measured before."""
_FOR_UNDERSTANDING: Final = (0.15, 1 / 3, 20.0, 120.0)
"""Share of the time to minimise and model results; the larger share of a short campaign, as a result takes
seconds, and how many seconds that gives at most; seconds at most."""


def unwatched(event: Event) -> None:
    """A watcher that shows nothing."""


@dataclass(frozen=True)
class FuzzOutcome:
    """What there is in the end.

    :ivar folder: that of the results. :ivar campaign: what `results.json` holds. :ivar notes: for the user.
    :ivar interruption: the exception that ended it before its time.
    """

    folder: Path
    campaign: results.Campaign
    notes: tuple[str, ...]
    interruption: BaseException | None = None


class _Started(NamedTuple):
    """What a campaign begins with: options, seed of the random numbers, seeds, and what an earlier part
    found."""

    options: FuzzOptions
    random_seed: int
    seeds: tuple[SeedFile, ...]
    notes: tuple[str, ...]
    entries: Iterable[JournalLine] = ()


def fuzz(
    repo: Repository, options: FuzzOptions, watch: Watch = unwatched, report: Report = silent
) -> FuzzOutcome:
    """Fuzz a program.

    An interruption ends the search; what was found by then is written, and the exception is in the outcome.

    :param watch: gets what happens. :param report: gets what is prepared.
    :raises UsageError: where an option is wrong, or the seeds cannot be used; nothing has run then.
    :raises JobFailed: where the program cannot be fuzzed; no folder of results is left then, unless seeds
        were tried already.
    :raises OSError: where the disk is full, ...; what was found by then is in the folder, for :func:`resume`.
    :raises NotTrusted: if the user has not said that he trusts the repository.
    """
    options.check()
    repo.require_trust("fuzzing")
    found = seeds.read(options.samples, repo.working_root, options.filter)
    number = secrets.randbits(32) if options.seed is None else options.seed
    started = _Started(options, number, found.seeds, found.notes)
    existed = options.output.exists()
    session: _Session | None = None
    try:
        folders.prepare(options.output)
        session = _Session(repo, started, watch, report)
        return session.run()
    except BaseException:
        if session is None or not session.has_begun:
            _forget(options.output, existed)
        raise


def resume(
    repo: Repository,
    folder: Path,
    changes: Callable[[FuzzOptions], FuzzOptions],
    watch: Watch = unwatched,
    report: Report = silent,
) -> FuzzOutcome:
    """Go on with a campaign that was interrupted, killed, or has ended as its time was over.

    :param changes: what is different now, e.g. how long it takes. :raises ProfileError: if `folder` holds
        none. :raises NotTrusted: if the user did not begin it, and has not said that he trusts it.
    """
    head = next(read_journal(folder), None)
    if head is None or head.kind != "campaign":
        raise ProfileError(f"{folder} holds no campaign that has begun", "fuzz without --resume")
    options = changes(trusted(repo, folder, head.values.get("settings") or {}, "resuming a campaign"))
    options.check()
    folders.probe(folder)
    before = list(takewhile(lambda one: one.kind != BEGAN, read_journal(folder)))
    entries = islice(read_journal(folder), 1, None)
    began = next(islice(read_journal(folder), len(before), None), None) is not None
    members = [one.member() for one in before if one.kind == "seed"]
    if began:
        found = tuple(SeedFile(Path(one.name), one.data) for one in members)
    else:  # it had not tried all seeds
        found = seeds.read(options.samples, repo.working_root, options.filter).seeds
    started = _Started(options, int(head.values["random_seed"]), found, (), entries)
    return _Session(repo, started, watch, report, resumed=began).run()


class _Session:
    """One run of the verb. :ivar has_begun: the seeds were tried, so that there is something to resume."""

    def __init__(
        self, repo: Repository, started: _Started, watch: Watch, report: Report, *, resumed: bool = False
    ) -> None:
        self._repo = repo
        self._started = started
        self._options = started.options
        self._watch = watch
        self._report = report
        self._resumed = self.has_begun = resumed
        self._notes = list(started.notes)
        first = started.seeds[0]
        regex = self._path(self._options.regex_rules)
        dictionary = self._path(self._options.dictionary)
        self._rules = rules.for_seed(first.data, first.path, regex, dictionary=dictionary)
        self._limit = self._size_limit()

    def run(self) -> FuzzOutcome:
        """Prepare, search, measure, write."""
        try:
            return self._run()
        except Exception as problem:
            if self.has_begun:
                folder = self._options.output
                problem.add_note(f"what was found by then is kept: perun fuzz -o {folder} --resume goes on")
            raise

    def _run(self) -> FuzzOutcome:
        options = self._options
        split("command", f"{options.cmd} {options.args}")
        with ExitStack() as stack:
            signals = stack.enter_context(OneInterruption())
            place = stack.enter_context(entered(self._repo, options, self._report))
            rng = random.Random(self._started.random_seed)
            tester = Tester(self._repo, options, place, rng)
            executor = self._executor(place, stack)
            journal = CampaignJournal(options.output, anew=not self._resumed)
            stack.callback(journal.close)
            if not self._resumed:
                number = self._started.random_seed
                settings = marked(self._repo, options)
                journal.write("campaign", format=FORMAT, settings=settings, random_seed=number)
            campaign = Campaign(self._rules, executor, self._settings(), tester, journal, self._random())
            return self._search(campaign, place, signals)

    def _search(self, campaign: Campaign, place: FuzzFolders, signals: OneInterruption) -> FuzzOutcome:
        interruption: BaseException | None = None
        options = self._options
        try:
            for event in self._events(campaign):
                self.has_begun = True
                self._watch(event)
        except (KeyboardInterrupt, Terminated) as problem:
            interruption = problem
        if not campaign.found.seeds:
            raise interruption or KeyboardInterrupt
        written = self._write(campaign, place)
        if interruption is None:
            try:
                written = self._understand(written, place, options.seconds - campaign.seconds)
            except (KeyboardInterrupt, Terminated) as problem:
                interruption = problem
                written = results.load(options.output)
        signals.hold_back()
        self._notes += self._draw(written)
        return FuzzOutcome(options.output, written, tuple(self._notes), interruption)

    def _events(self, campaign: Campaign) -> Iterator[Event]:
        if self._resumed:
            campaign.restore(self._started.entries)
            yield from campaign.search()
        else:
            yield from campaign.run(self._started.seeds)
        share, most = _FOR_TESTS if campaign.settings.tests_between else _FOR_ALL_TESTS
        whole = self._options.seconds
        left = whole - campaign.seconds - self._for_understanding()
        yield from campaign.measure_rest(min(share * whole, most, left))

    def _settings(self) -> SearchSettings:
        options = self._options
        between = options.seed is None or not options.coverage
        share, most = _FOR_TESTS if between else _FOR_ALL_TESTS
        kept = min(share * options.seconds, most) if options.coverage else 0.0
        kept += self._for_understanding()
        return SearchSettings(
            options.seconds - kept,
            self._limit,
            options.hang,
            options.executions,
            options.gathering,
            options.interesting,
            options.rate,
            options.strategy,
            between,
            options.coverage,
            options.ignore_failure,
        )

    def _for_understanding(self) -> float:
        share, short, least, most = _FOR_UNDERSTANDING
        seconds = self._options.seconds
        return min(max(share * seconds, min(short * seconds, least)), most) if self._options.minimize else 0.0

    def _random(self) -> random.Random:
        """The random numbers of the search; a resumed one goes on with others than it began with."""
        number = self._started.random_seed
        return random.Random(f"{number} resumed {secrets.randbits(32)}" if self._resumed else number)

    def _executor(self, place: FuzzFolders, stack: ExitStack) -> Executor:
        """What runs inputs, started."""
        options = self._options
        if not options.coverage:
            return NullExecutor()
        self._report("starting the program", 0, 0)
        if options.jobs == 1:
            here = SerialExecutor(self._coverage(place, "counting")())
            stack.callback(here.close)
            return here
        makers = [self._coverage(place, f"counting-{number}") for number in range(options.jobs)]
        pool = Pool(makers, place.environ)
        stack.callback(pool.close)
        return pool

    def _coverage(self, place: FuzzFolders, name: str) -> Callable[[], Coverage]:
        """What makes the coverage of one process, with a scratch folder of its own."""
        return coverage_of(self._options, place, self._started.seeds[0].path.suffix, name)

    def _write(self, campaign: Campaign, place: FuzzFolders) -> results.Campaign:
        options = self._options
        program = results.Program(
            options.cmd,
            options.args,
            str(self._repo.working_root),
            place.version.checksum,
            place.uncommitted,
            options.build,
            options.backend if options.coverage else "",
        )
        settings = marked(self._repo, options)
        return folders.write(options.output, campaign, program, settings, self._started.random_seed)

    def _understand(self, written: results.Campaign, place: FuzzFolders, left: float) -> results.Campaign:
        """Minimise the best results, and find how their cost grows, as long as there is time left."""
        options = self._options
        if not options.minimize or not options.coverage or not written.results or left <= 0:
            return written
        with closing(self._coverage(place, "understanding")()) as coverage:
            coverage.start()
            return understand(
                options.output,
                written,
                coverage.run,
                best=options.minimize,
                max_size=self._limit,
                hang_timeout=options.hang,
                unit=f"executed {coverage.unit}",
                seconds=min(self._for_understanding(), left),
                report=lambda text: self._report(text, 0, 0),
                keep=partial(results.save, options.output),
            )

    def _draw(self, written: results.Campaign) -> Iterable[str]:
        """The page and the graphs; what the user should know of them."""
        return pages.write(self._options.output, written, plots=self._options.plotting)

    def _size_limit(self) -> int:
        largest = max(self._started.seeds, key=lambda one: len(one.data))
        size = self._options.size
        limit = size.of(len(largest.data))
        if size.absolute is not None and size.absolute < len(largest.data):
            self._notes.append(
                f"--max-size {size.absolute} is less than the {limit} bytes of the seed {largest.path}: "
                "mutations have up to as many as that"
            )
        return limit

    def _path(self, name: str) -> Path | None:
        return self._repo.working_root / name if name else None


def _forget(folder: Path, existed: bool) -> None:
    """Remove what nothing was found for, so that the same name can be given again."""
    journal = folder / results.LOGS / "campaign.jsonl"
    with contextlib.suppress(OSError):
        if not any(one.name != results.LOGS for one in folder.iterdir()):
            journal.unlink(missing_ok=True)
            (folder / results.LOGS).rmdir()
    if not existed:
        with contextlib.suppress(OSError):
            folder.rmdir()
