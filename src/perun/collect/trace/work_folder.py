"""The folder of the temporary files of a trace, with its log, and what is kept of it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from shutil import copytree, make_archive, rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perun.collect._calls.events import Calls
    from perun.collect.trace.params import TraceParams
    from perun.plugin.api import CollectContext


class WorkFolder:
    """An empty folder for one trace. :ivar path: where it is."""

    def __init__(self, params: TraceParams, ctx: CollectContext) -> None:
        self.path = ctx.scratch / "trace"
        self._params = params
        self._ctx = ctx
        self._started = time.monotonic()
        rmtree(self.path, ignore_errors=True)
        self.path.mkdir(parents=True)

    def log(self, text: str) -> None:
        """Write a line of the log that `--watchdog` asks for."""
        if self._params.watchdog:
            with open(self.path / "watchdog.log", "a", encoding="utf-8") as file:
                file.write(f"{time.monotonic() - self._started:10.6f} {text}\n")

    def write_calls(self, names: Sequence[str], calls: Calls) -> None:
        """Write the calls that `--verbose-trace` asks for.

        :param names: of the functions, by their numbers.
        """
        with open(self.path / "trace.txt", "a", encoding="utf-8") as file:
            for function, thread, start, duration, size in zip(
                *(
                    column.tolist()
                    for column in (calls.function, calls.thread, calls.start, calls.duration, calls.size)
                ),
                strict=True,
            ):
                file.write(f"{start} {thread} {duration} {size} {names[function]}\n")

    def remove(self) -> None:
        """Remove the temporary files, after copying them to where the parameters want them."""
        params = self._params
        if params.keep_temp:
            kept = mkdtemp(prefix="perun-trace-")
            copytree(self.path, kept, dirs_exist_ok=True, symlinks=True)
            self._ctx.note(f"--keep-temp: the temporary files are in {kept}")
        if params.zip_temp:
            folder = self._ctx.logs or Path(os.path.dirname(self._ctx.scratch), "logs")
            folder.mkdir(parents=True, exist_ok=True)
            # A folder of its own, as another run may pack its files in the same second.
            kept = mkdtemp(prefix=time.strftime("trace-%Y-%m-%d-%H-%M-%S-"), dir=folder)
            archive = make_archive(os.path.join(kept, "trace"), "gztar", self.path)
            self._ctx.note(f"--zip-temp: the temporary files are in {archive}")
        rmtree(self.path, ignore_errors=True)
