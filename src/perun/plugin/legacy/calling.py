"""How functions of a plugin are called: where, with which arguments, and what becomes of an exception."""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from perun.errors import PerunError, Terminated
from perun.plugin.failing import failure


@dataclass(frozen=True)
class Executable:
    """What is measured, as the functions of a collector find it in `kwargs["executable"]`."""

    cmd: str
    args: str = ""
    workload: str = ""

    def __str__(self) -> str:
        return " ".join(part for part in (self.cmd, self.args, self.workload) if part)


@contextlib.contextmanager
def in_environment(cwd: Path, environ: Mapping[str, str]) -> Iterator[None]:
    """Make `cwd` the current directory and `environ`, unless it is empty, the environment of this process.

    The documented functions get neither as an argument; without this a plugin would measure the user's
    working directory in place of the version that is asked for.
    """
    before = dict(os.environ)
    with contextlib.chdir(cwd):
        try:
            if environ:
                _set_environment(environ)
            yield
        finally:
            if environ:
                _set_environment(before)


def _set_environment(environ: Mapping[str, str]) -> None:
    if dict(os.environ) != dict(environ):
        os.environ.clear()
        os.environ.update(environ)


@contextlib.contextmanager
def errors_as(on: str, error: type[PerunError]) -> Iterator[None]:
    """Turn an exception of the plugin's code into a :func:`failure`; errors of Perun pass."""
    try:
        yield
    except (PerunError, Terminated):
        raise
    except (Exception, SystemExit) as problem:
        raise failure(on, error, problem) from problem


def accepted(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of `values` that the function takes by name; all of them if it has `**kwargs`."""
    parameters = inspect.signature(function).parameters.values()
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return dict(values)
    names = {one.name for one in parameters if one.kind is not one.POSITIONAL_ONLY}
    return {name: value for name, value in values.items() if name in names}


def run_module(package: ModuleType) -> ModuleType:
    """The `run.py` of the plugin's package; the module itself if it has none, e.g. is a single file."""
    name = f"{package.__name__}.run"
    if hasattr(package, "__path__") and find_spec(name) is not None:
        return import_module(name)
    return package


def summary(*modules: ModuleType) -> str:
    """The first line of the first docstring there is: a plugin's line of help."""
    for module in modules:
        line = (module.__doc__ or "").strip().partition("\n")[0].strip()
        if line.strip("."):
            return line
    return ""


def short(value: Any) -> str:
    """The value as Python writes it, cut if it is long."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
