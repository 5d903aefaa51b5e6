"""Runs that do the same each time: no random addresses, no random hashes, an environment of one size.

Where the stack and the libraries lie decides how text is aligned and how hash tables of addresses fall out;
the words and variables that a program starts with lie on its stack (Mytkowicz, Diwan, Hauswirth, Sweeney:
Producing wrong data without doing anything obviously wrong, 2009). A program that is measured at another
path, or by a user with another environment, must not count differently for that.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from shutil import which
from typing import Final

from perun.plugin.api import Run
from perun.process import programs

PADDING: Final = "PERUN_PADDING"
"""The variable that fills the environment up."""
STEP: Final = 16 * 1024
"""Bytes: the environment and the words of a command take a multiple of that together."""
_POINTER: Final = 8


def repeatable(run: Run) -> Run:
    """The run with an environment that makes it repeatable.

    Hashes of Python's texts get the seed 0, unless the user has chosen a seed.
    """
    environ = dict(run.environ)
    if not environ.get("PYTHONHASHSEED", "").isdecimal():
        environ["PYTHONHASHSEED"] = "0"
    environ.pop(PADDING, None)
    missing = -(_size(run.command().argv, environ) + _size([], {PADDING: ""})) % STEP
    return run._replace(environ={**environ, PADDING: "x" * missing})


def _size(words: Sequence[str], environ: Mapping[str, str]) -> int:
    """Bytes that these take on the stack of a new process, with a pointer for each."""
    texts = [*words, *(f"{name}={value}" for name, value in environ.items())]
    return sum(len(os.fsencode(text)) + 1 + _POINTER for text in texts)


def fixed_addresses(environ: Mapping[str, str]) -> list[str]:
    """The words that stand before a command so that its addresses are not random.

    They are none where that cannot be: `setarch` is missing, or the system, e.g. a container, refuses.
    """
    path = which("setarch", path=environ.get("PATH", os.defpath))
    if path is None:
        return []
    words = [path, "-R"]
    try:
        done = programs.run([*words, "true"], environ=environ)
    except OSError:
        return []
    return words if done.code == 0 else []
