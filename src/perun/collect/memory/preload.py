"""What a run needs so that a program loads the recorder: an environment, and no `env` before the program."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from perun.plugin.api import Run


def preloaded(run: Run, library: Path, settings: Mapping[str, str]) -> Run:
    """The run with the recorder before all other libraries that the user preloads.

    `env NAME=VALUE... program` becomes the program in that environment: it is what the user measures, and its
    own LD_PRELOAD would replace that of the recorder.

    :param settings: the settings of the recorder; see `native/record.h`.
    :raises UsageError: as :meth:`Run.command`.
    """
    plain = _without_env(run)
    others = plain.environ.get("LD_PRELOAD", "")
    preload = ":".join(filter(None, (str(library), others)))
    return plain._replace(environ={**plain.environ, "LD_PRELOAD": preload, **settings})


class _Env(NamedTuple):
    """What `env` starts."""

    argv: list[str]
    environ: dict[str, str]


def _without_env(run: Run) -> Run:
    argv = run._replace(workload="").command().argv
    if os.path.basename(argv[0]) != "env":
        return run
    started = _started_by_env(argv[1:], run.environ)
    if started is None:
        return run
    return run._replace(cmd=shlex.join(started.argv), args="", environ=started.environ)


def _started_by_env(words: Sequence[str], environ: Mapping[str, str]) -> _Env | None:
    """What `env` starts with these arguments; None for options that do more than change the environment."""
    changed, left = dict(environ), list(words)
    while left and left[0].startswith("-"):
        option = left.pop(0)
        if option == "--":
            break
        if option in ("-", "-i", "--ignore-environment"):
            changed.clear()
        elif option in ("-u", "--unset") and left:
            changed.pop(left.pop(0), None)
        elif option.startswith("--unset="):
            changed.pop(option.removeprefix("--unset="), None)
        else:
            return None
    while left and "=" in left[0]:
        name, _, value = left.pop(0).partition("=")
        changed[name] = value
    return _Env(left, changed) if left else None
