"""The environment of one invocation: read once, passed to every command as `ctx.obj`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from perun.cli.table import clean, one_line
from perun.core.errors import NotPerunRepository
from perun.repository.repository import Repository, open_repository

if TYPE_CHECKING:
    from perun.cli.metrics import Metrics
    from perun.cli.progress import Progress
    from perun.plugin.api import Statistics
    from perun.plugin.registry import Registry
    from perun.profile.factory import Profile
    from perun.repository.trust import TrustState

STYLES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "bright_yellow": "93",
    "bright_blue": "94",
    "bright_magenta": "95",
}
"""Styles that :meth:`Session.paint` knows, with their code for the terminal."""
REFUSED_AFTER_INTERRUPTION = ("collect", "run", "recover")
"""Verbs that refuse or repair after a killed `--in-place` run; the others warn."""


class Session:
    """One invocation of `perun`: where it was called, how it talks, and the repository it works on.

    The attribute `profile` and the methods `render`, `run_collector` and `run_postprocessor` are what the
    click commands of plugins find in `ctx.obj`.
    """

    # Not a dataclass: the library behind those is a tenth of the time that `perun status` takes.
    def __init__(self, environ: Mapping[str, str], cwd: Path) -> None:
        self.environ = environ
        self.cwd = cwd
        self.command = ""
        self.out: TextIO = sys.stdout
        self.err: TextIO = sys.stderr
        self.verbosity = 0
        self.colour: bool | None = None
        self.pager = True
        self.dev_mode = False
        self.metrics: Metrics | None = None
        self.profile_loader: Callable[[], Profile] | None = None
        self.other_profile_loader: Callable[[str], Profile] | None = None
        self.statistics_loader: Callable[[], Statistics | None] = lambda: None
        self.source_loader: Callable[[str], str | None] = lambda path: None
        self.collector_runner: Callable[[str, Any], None] | None = None
        self.postprocessor_runner: Callable[[Profile, str, Any], None] | None = None

    @property
    def shows_tracebacks(self) -> bool:
        """Whether the user asked for the traceback of each error: by `-vv`, or by `--dev-mode`."""
        return self.dev_mode or self.verbosity > 1

    @cached_property
    def repository(self) -> Repository:
        """The repository at or above the current directory.

        :raises NotPerunRepository: if there is none.
        """
        repository = open_repository(self.cwd, self.environ, self.ask_trust)
        for warning in repository.config.warnings:
            self.warn(warning)
        if self.command not in REFUSED_AFTER_INTERRUPTION and repository.in_place_journal.exists():
            from perun.repository.copies import interruption

            self.warn(interruption(repository))
        return repository

    @cached_property
    def registry(self) -> Registry:
        """The plugins; outside of any repository those that are installed."""
        try:
            return self.repository.registry
        except NotPerunRepository:
            from perun.plugin.registry import Registry

            return Registry()

    @cached_property
    def profile(self) -> Profile:
        """The profile that `perun show` or `perun postprocessby` is about; looked up when it is first needed.

        So the help of a view and an error in its options need no profile.
        """
        assert self.profile_loader is not None
        return self.profile_loader()

    @cached_property
    def coloured(self) -> bool:
        """Whether standard output gets colours: a terminal does, unless NO_COLOR or --no-color is set."""
        return self._coloured(self.out)

    def _coloured(self, stream: TextIO) -> bool:
        if self.colour is not None:
            return self.colour
        if self.environ.get("NO_COLOR"):
            return False
        if self.environ.get("CLICOLOR_FORCE", "0") != "0":
            return True
        return stream.isatty() and self.environ.get("TERM") != "dumb"

    @cached_property
    def columns(self) -> int:
        """Width of the terminal that standard output is; 0 if it is none."""
        if not self.out.isatty():
            return 0
        import os

        try:
            return os.get_terminal_size(self.out.fileno()).columns
        except OSError:
            return 0

    def progress(self, total: int, title: str, *, enabled: bool = True) -> AbstractContextManager[Progress]:
        """The progress of long work, on standard error; output meanwhile must go to its `out`."""
        from perun.cli.progress import progress

        return progress(
            total,
            title,
            stream=self.err,
            enabled=enabled,
            verbose=self.verbosity > 0,
            colour=self._coloured(self.err),
            out=self.out,
        )

    @contextmanager
    def writing_to(self, out: TextIO) -> Iterator[None]:
        """Write all output of the block to `out`, coloured as standard output is."""
        before, _ = self.out, (self.coloured, self.columns)  # decided by the real standard output
        self.out = out
        try:
            yield
        finally:
            self.out = before

    def paint(self, text: str, style: str) -> str:
        """`text` in a style such as `bold red`, if standard output has colours."""
        if not self.coloured or not style or not text:
            return text
        codes = ";".join(STYLES[word] for word in style.split())
        return f"\x1b[{codes}m{text}\x1b[0m"

    def say(self, text: str = "") -> None:
        """One line of the answer, on standard output."""
        self.out.write(text + "\n")

    def note(self, text: str) -> None:
        """One line beside the answer, on standard error, after what was answered so far."""
        for stream, line in ((self.out, ""), (self.err, text + "\n")):
            # `streams` reports a failing standard output at the end; a failing standard error stays silent.
            with suppress(OSError):
                stream.write(line)
                stream.flush()

    def warn(self, text: str) -> None:
        """A warning, on standard error."""
        label = "\x1b[33mwarning:\x1b[0m" if self._coloured(self.err) else "warning:"
        self.note(f"{label} {clean(text)}")

    def fail(self, message: str, hint: str = "") -> None:
        """An error and what to do about it, on standard error."""
        coloured = self._coloured(self.err)
        self.note(("\x1b[1;31merror:\x1b[0m " if coloured else "error: ") + clean(message))
        if hint:
            self.note(("\x1b[36mhint:\x1b[0m " if coloured else "hint: ") + clean(hint))

    def traceback(self, problem: BaseException) -> str:
        """Where an error comes from, if the user asked for that; else empty."""
        if not self.shows_tracebacks:
            return ""
        import traceback

        return clean("".join(traceback.format_exception(problem))).rstrip()

    def trace(self, problem: BaseException) -> None:
        """Where an error comes from, on standard error, if the user asked for that."""
        if text := self.traceback(problem):
            self.note(text)

    def render(self, view: str, params: Any) -> None:
        """Interpret the profile of this invocation (`perun show`)."""
        from perun.plugin.api import ViewContext
        from perun.profile.incomplete import text_of
        from perun.running.showing import show

        lacks = text_of(self.profile)
        if lacks:
            self.warn(f"this profile is incomplete: {lacks}")

        ctx = ViewContext(
            note=lambda text: self.note(one_line(text)),
            load=self.other_profile_loader,
            columns=self.columns,
            coloured=self.coloured,
            statistics=self.statistics_loader,
            source=self.source_loader,
        )
        show(self.repository, self.profile, view, params, self.out, ctx)

    def run_collector(self, name: str, params: Any) -> None:
        """Collect with the options of the running `perun collect`."""
        assert self.collector_runner is not None
        self.collector_runner(name, params)

    def run_postprocessor(self, profile: Profile, name: str, params: Any) -> None:
        """Postprocess with the options of the running `perun postprocessby`."""
        assert self.postprocessor_runner is not None
        self.postprocessor_runner(profile, name, params)

    def ask_trust(self, found: TrustState, doing: str) -> bool:
        """Show what a repository would run, and ask whether the user trusts it; no without a terminal."""
        if not (sys.stdin.isatty() and self.err.isatty()):
            return False
        import click

        changed = f"It has changed since you trusted it on {found.since}." if found.since else ""
        self.note(f"{clean(doing)} runs what {one_line(found.place)} says. {changed}".rstrip())
        for one in found.runs:
            self.note(f"  {one_line(str(one))}")
        return click.confirm("Do you trust it?", default=False, err=True)

    def confirm(self, path: Path) -> bool:
        """Ask whether a profile found by walking the files is the one meant; no without a terminal."""
        if not sys.stdin.isatty():
            self.note(f"found {one_line(str(path))}; give this path to use it")
            return False
        import click

        return click.confirm(f"use {one_line(str(path))}?", default=False, err=True)
