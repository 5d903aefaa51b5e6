"""Collectors and postprocessors of the documented API: phases that pass one dict on (manual 4.2, 5.2)."""

from __future__ import annotations

import contextlib
import copy
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

import click

from perun.core.errors import JobFailed, PerunError, PluginError, Terminated
from perun.plugin.api import NO_POSTPROCESS_CONTEXT, CollectContext, PostprocessContext, Run
from perun.plugin.loading import failure
from perun.plugin.params import FreeParams
from perun.profile.factory import Profile

# How functions of a plugin are called: where, with which arguments, and what becomes of an exception.


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


# The click command that a plugin of the documented API brings along.

_RUNNER = "perun.logic.runner"
_PASSING = (PerunError, click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError)


def command_of(module: ModuleType, name: str, what: str) -> click.Command | None:
    """The command called `name` in the module, else the only one that it has, made safe."""
    named = getattr(module, name, None)
    if isinstance(named, click.Command):
        return guarded(named, what)
    found = {id(value): value for value in vars(module).values() if isinstance(value, click.Command)}
    return guarded(next(iter(found.values())), what) if len(found) == 1 else None


def guarded(command: click.Command, what: str) -> click.Command:
    """A copy of `command` that turns what its code raises into a :class:`~perun.core.errors.PluginError`.

    What Perun itself raises, called by the command, stays as it is.

    :param what: the plugin, for the message.
    """
    safe = copy.copy(command)
    for method in ("parse_args", "invoke"):  # the first runs callbacks of options
        vars(safe)[method] = _guarded(getattr(command, method), what)
    return safe


def _guarded(method: Callable[..., Any], what: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except _PASSING:
            raise
        except (Exception, SystemExit) as problem:
            if _from_runner(problem.__traceback__):
                raise
            raise failure(what, PluginError, problem) from problem

    return call


def _from_runner(step: TracebackType | None) -> bool:
    while step is not None:
        if step.tb_frame.f_globals.get("__name__") == _RUNNER:
            return True
        step = step.tb_next
    return False


class _Unit:
    """A plugin whose work is done by `before`, a main phase and `after`, each of them a function.

    `command` is its click command, None if it has none; `accepts_any` says that it takes any
    parameters.
    """

    accepts_any = True
    Params = FreeParams

    def __init__(self, kind: str, main: str, name: str, package: ModuleType) -> None:
        run = run_module(package)
        self.name = name
        self.help = summary(package, run) or f"The {kind} {name}."
        self.what = f"the {kind} {name!r}"
        self.command = command_of(run, name, self.what)
        self._package = package
        self._phases = {phase: getattr(run, phase, None) for phase in ("before", main, "after")}
        if not callable(self._phases[main]):
            raise PluginError(f"{run.__file__} defines no function {main}()")

    def _run(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Run the phases; what they print is a diagnostic, the answer of the command is Perun's."""
        with contextlib.redirect_stdout(sys.stderr):
            for phase, function in self._phases.items():
                if callable(function):
                    kwargs = self._run_phase(phase, function, kwargs)
        return kwargs

    def _run_phase(self, phase: str, function: Callable[..., Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        with errors_as(f"{phase}() of {self.what}", JobFailed):
            outcome = function(**accepted(function, kwargs))
        if not isinstance(outcome, tuple) or len(outcome) != 3 or not isinstance(outcome[2], Mapping):
            raise PluginError(
                f"{phase}() of {self.what} must return (status, message, kwargs), not {short(outcome)}"
            )
        status, message, returned = outcome
        if not _is_success(status):
            raise JobFailed(f"{phase}() of {self.what} failed with status {_value(status)}: {message}")
        return {**kwargs, **returned}

    def _profile(self, kwargs: Mapping[str, Any], complete: Callable[[Any], None]) -> Profile:
        made = kwargs.get("profile")
        if not isinstance(made, Mapping):
            raise PluginError(f"{self.what} must leave a profile in kwargs['profile'], not {short(made)}")
        profile = made if isinstance(made, Profile) else dict(made)
        complete(profile)
        if isinstance(profile, Profile):
            return profile
        try:
            return Profile(profile)
        except PerunError as problem:
            message = f"the profile of {self.what} is wrong: {problem.message}"
            raise PluginError(message, problem.hint) from problem
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise PluginError(f"the profile of {self.what} is in no known layout: {problem!r}") from problem


class LegacyCollector(_Unit):
    """A collector whose package has `COLLECTOR_TYPE`, `COLLECTOR_DEFAULT_UNITS` and phases in `run.py`."""

    def __init__(self, name: str, package: ModuleType) -> None:
        super().__init__("collector", "collect", name, package)

    def collect(self, run: Run, params: FreeParams, ctx: CollectContext) -> Profile:
        """Run the phases in the folder and environment of `run`.

        :raises JobFailed: if a phase raises, or returns a status that is not 0.
        :raises PluginError: if a phase returns something else than the manual says.
        """
        kwargs = {
            **params.values,
            "cmd": run.cmd,
            "args": run.args,
            "workload": run.workload,
            "executable": Executable(run.cmd, run.args, run.workload),
        }
        with errors_as(self.what, JobFailed), in_environment(run.cwd, run.environ):
            kwargs = self._run(kwargs)
        return self._profile(kwargs, lambda profile: self._complete(profile, params))

    def _complete(self, profile: Any, params: FreeParams) -> None:
        header = dict(profile.get("header") or {})
        header.setdefault("type", str(getattr(self._package, "COLLECTOR_TYPE", "mixed")))
        header.setdefault("units", dict(getattr(self._package, "COLLECTOR_DEFAULT_UNITS", {})))
        profile["header"] = header
        if not profile.get("collector_info"):
            profile["collector_info"] = {"name": self.name, "params": _plain(params.values)}
        if profile.get("postprocessors") is None:
            profile["postprocessors"] = []


class LegacyPostprocessor(_Unit):
    """A postprocessor whose package has `SUPPORTED_PROFILES` and phases in `run.py`."""

    def __init__(self, name: str, package: ModuleType) -> None:
        super().__init__("postprocessor", "postprocess", name, package)
        supported = getattr(package, "SUPPORTED_PROFILES", ())
        entries = [supported] if isinstance(supported, str) else supported
        self.supported_profiles = tuple(one for entry in entries for one in str(entry).split("|"))

    def process(
        self, profile: Profile, params: FreeParams, ctx: PostprocessContext = NO_POSTPROCESS_CONTEXT
    ) -> Profile:
        """Run the phases on `profile`.

        :raises JobFailed: if a phase raises, or returns a status that is not 0.
        :raises PluginError: if a phase returns something else than the manual says.
        """
        kwargs = self._run({**params.values, "profile": profile})
        return self._profile(kwargs, lambda made: _keep(made, profile))


def _keep(made: Any, original: Profile) -> None:
    """Give a profile that was made anew what belongs to how the original one was collected."""
    for key in ("header", "collector_info", "postprocessors", "origin", "machine"):
        if key not in made and key in original:
            made[key] = original[key]


def _is_success(status: Any) -> bool:
    return getattr(status, "name", None) == "OK" or bool(_value(status) == 0)


def _value(status: Any) -> Any:
    return getattr(status, "value", status)


def _plain(value: Any) -> Any:
    """`value` as JSON can hold it; click gives paths and files, too."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
