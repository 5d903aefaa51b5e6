"""Plugins of the documented API that are functions: views, checks, and version control systems."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, TextIO

import click

from perun.core.errors import PluginError, UsageError, VersionControlError
from perun.plugin.api import NO_VIEW_CONTEXT, CheckContext, MajorVersion, MinorVersion, Vcs, ViewContext
from perun.plugin.legacy.units import (
    command_of,
    errors_as,
    guarded,
    in_environment,
    run_module,
    short,
    summary,
)
from perun.plugin.loading import short_string
from perun.plugin.params import FreeParams, nearest
from perun.profile.changes import DegradationInfo

if TYPE_CHECKING:
    from perun.profile.factory import Profile


# Views of the documented API: a click command that prints the profile it is given (manual 6.2).


@dataclass(frozen=True)
class _ProfileHolder:
    """What `pass_profile` finds in `ctx.obj` if a view is not called from the command line."""

    profile: Profile


class LegacyView:
    """A view that is a click command, to be mounted as `command`, or called through :meth:`render`."""

    accepts_any = True
    Params = FreeParams

    def __init__(self, name: str, loaded: object) -> None:
        self.name = name
        self.what = f"the view {name!r}"
        if isinstance(loaded, click.Command):
            command: click.Command | None = guarded(loaded, self.what)
            self.help = ""
        elif isinstance(loaded, ModuleType):
            run = run_module(loaded)
            command = command_of(run, name, self.what)
            self.help = summary(loaded, run)
        else:
            raise PluginError(f"{loaded!r} is neither a module nor a click command")
        if command is None:
            raise PluginError(f"{loaded!r} defines no click command {name}")
        self.command = command
        self.help = self.help or command.get_short_help_str() or f"The view {name}."

    def render(
        self, profile: Profile, params: FreeParams, out: TextIO, ctx: ViewContext = NO_VIEW_CONTEXT
    ) -> None:
        """Run the command with `params` as its options and arguments; what it prints goes to `out`.

        It knows of no context.

        :raises UsageError: if the command has no such option, or does not take its value.
        :raises PluginError: if the command fails.
        """
        self._refuse_unknown(params.values)
        try:
            with (
                contextlib.redirect_stdout(out),
                self.command.make_context(
                    self.name, [], obj=_ProfileHolder(profile), default_map=dict(params.values)
                ) as context,
            ):
                self.command.invoke(context)
        except click.ClickException as problem:
            raise UsageError(f"{self.what}: {problem.format_message()}") from problem
        except click.exceptions.Exit as ending:
            if ending.exit_code:
                raise PluginError(f"{self.what} ended with status {ending.exit_code}") from ending

    def _refuse_unknown(self, values: Mapping[str, Any]) -> None:
        known = [parameter.name for parameter in self.command.params if parameter.name]
        for key in values:
            if key not in known:
                raise UsageError(f"{self.what} has no parameter {key!r}", nearest(key, known))


# Checks of the documented API: a generator function over two profiles (manual 8.4).


class LegacyCheck:
    """A check that is a function of its module's name.

    The function takes the baseline and the target; more parameters are given by name those of
    `degradation.<name>` in the configuration, and `models_strategy`, the value of `--models-type`.
    """

    accepts_any = True
    Params = FreeParams

    def __init__(self, name: str, loaded: object) -> None:
        function = getattr(run_module(loaded), name, None) if isinstance(loaded, ModuleType) else loaded
        if not callable(function):
            raise PluginError(f"{loaded!r} defines no function {name}()")
        self.name = name
        self.short = short_string(name)
        self.what = f"the check {name!r}"
        described = summary(loaded) if isinstance(loaded, ModuleType) else ""
        self.help = described or (inspect.getdoc(function) or f"The check {name}.").partition("\n")[0]
        self._function: Callable[..., Any] = function

    def compare(
        self, baseline: Profile, target: Profile, params: FreeParams, ctx: CheckContext
    ) -> list[DegradationInfo]:
        """What the function yields.

        :raises PluginError: if it raises, or yields something else than a `DegradationInfo`.
        """
        more = {**params.values, **({"models_strategy": ctx.models_type} if ctx.models_type else {})}
        with errors_as(self.what, PluginError), contextlib.redirect_stdout(sys.stderr):
            changes = self._function(baseline, target, **_extra_arguments(self._function, more))
            if not isinstance(changes, Iterable):
                raise PluginError(f"{self.what} must be a generator, but returns {short(changes)}")
            found = list(changes)
        for change in found:
            if not isinstance(change, DegradationInfo):
                raise PluginError(f"{self.what} must yield DegradationInfo, not {short(change)}")
        return found


def _extra_arguments(function: Callable[..., Any], values: dict[str, Any]) -> dict[str, Any]:
    """Those of `values` that `function` takes by name beside its first two parameters."""
    parameters = list(inspect.signature(function).parameters.values())
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        first = {one.name for one in parameters[:2]}
        return {name: value for name, value in values.items() if name not in first}
    return {one.name: values[one.name] for one in parameters[2:] if one.name in values}


# Version control systems of the documented API: a module of functions (manual 13.1).

FUNCTIONS = (
    "init",
    "walk_minor_versions",
    "walk_major_versions",
    "get_minor_head",
    "get_head_major_version",
    "get_minor_version_info",
    "check_minor_version_validity",
    "massage_parameter",
    "is_dirty",
    "save_state",
    "restore_state",
    "checkout",
)
"""What the module has to define (manual 13.1.1)."""


def legacy_vcs(name: str, module: ModuleType) -> type[LegacyVcs]:
    """A class of version control systems that calls the functions of `module`.

    :raises PluginError: if a function is missing.
    """
    missing = [function for function in FUNCTIONS if not callable(getattr(module, function, None))]
    if missing:
        raise PluginError(f"{module.__file__} does not define {', '.join(missing)}")
    functions = {function: getattr(module, function) for function in FUNCTIONS}
    members = {
        "type": name,
        "functions": functions,
        "__doc__": summary(module) or f"The version control system {name}.",
        "__module__": module.__name__,
    }
    return type(name, (LegacyVcs,), members)


class LegacyVcs(Vcs):
    """Calls the functions in the folder of the repository and with its environment.

    A function whose first parameter has a name with `path` in it gets that folder there, as older
    releases passed it. What the functions raise becomes a
    :class:`~perun.core.errors.VersionControlError`.
    """

    functions: ClassVar[Mapping[str, Callable[..., Any]]]

    def _call(self, name: str, *arguments: Any) -> Any:
        function = self.functions[name]
        path = (str(self.root),) if _takes_path(function) else ()
        with self._inside(name):
            return function(*path, *arguments)

    def _on(self, name: str) -> str:
        return f"{name}() of the version control system {self.type!r}"

    @contextlib.contextmanager
    def _inside(self, name: str) -> Iterator[None]:
        with (
            errors_as(self._on(name), VersionControlError),
            in_environment(self.root, self.environ),
            contextlib.redirect_stdout(sys.stderr),
        ):
            yield

    def _walk(self, name: str, *arguments: Any) -> Iterator[Any]:
        versions = self._call(name, *arguments)
        if not isinstance(versions, Iterable):
            raise self._wrong(name, "an iterable", versions)
        with self._inside(name):
            iterator = iter(versions)
        while True:
            # The code of a generator runs here, and the folder must not stay changed between two steps.
            with self._inside(name):
                try:
                    version = next(iterator)
                except StopIteration:
                    return
            yield version

    def _wrong(self, name: str, expected: str, outcome: Any) -> PluginError:
        return PluginError(f"{self._on(name)} must return {expected}, not {short(outcome)}")

    def _minor(self, name: str, version: Any) -> MinorVersion:
        try:
            fields = [getattr(version, field) for field in MinorVersion._fields]
        except AttributeError:
            fields = list(version) if isinstance(version, (tuple, list)) else []
        if len(fields) != len(MinorVersion._fields):
            raise self._wrong(name, "MinorVersion", version)
        date, author, email, checksum, desc, parents = fields
        return MinorVersion(
            str(date), str(author), str(email), str(checksum), str(desc), tuple(map(str, parents or ()))
        )

    def _major(self, name: str, version: Any) -> MajorVersion:
        if isinstance(version, (tuple, list)) and len(version) == 2:
            return MajorVersion(str(version[0]), str(version[1]))
        if hasattr(version, "name") and hasattr(version, "head"):
            return MajorVersion(str(version.name), str(version.head))
        raise self._wrong(name, "MajorVersion", version)

    def _text(self, name: str, *arguments: Any) -> str:
        outcome = self._call(name, *arguments)
        if not isinstance(outcome, str):
            raise self._wrong(name, "a text", outcome)
        return outcome

    def init(self, params: Mapping[str, Any]) -> bool:
        """See the base class."""
        return bool(self._call("init", dict(params)))

    def walk_minor_versions(self, head: str) -> Iterator[MinorVersion]:
        """See the base class."""
        name = "walk_minor_versions"
        return (self._minor(name, version) for version in self._walk(name, head))

    def walk_major_versions(self) -> Iterator[MajorVersion]:
        """See the base class."""
        name = "walk_major_versions"
        return (self._major(name, version) for version in self._walk(name))

    def get_minor_head(self) -> str:
        """See the base class."""
        return self._text("get_minor_head")

    def get_head_major_version(self) -> str:
        """See the base class."""
        return self._text("get_head_major_version")

    def get_minor_version_info(self, minor_version: str) -> MinorVersion:
        """See the base class."""
        return self._minor("get_minor_version_info", self._call("get_minor_version_info", minor_version))

    def check_minor_version_validity(self, minor_version: str) -> None:
        """See the base class; a function that returns False refuses the version as well."""
        if self._call("check_minor_version_validity", minor_version) is False:
            raise VersionControlError(f"{self.type} knows no version {minor_version!r}")

    def massage_parameter(self, parameter: str, parameter_type: str | None = None) -> str:
        """See the base class."""
        return self._text("massage_parameter", parameter, parameter_type)

    def is_dirty(self) -> bool:
        """See the base class."""
        return bool(self._call("is_dirty"))

    def save_state(self) -> tuple[bool, str]:
        """See the base class."""
        outcome = self._call("save_state")
        if not isinstance(outcome, (tuple, list)) or len(outcome) != 2:
            raise self._wrong("save_state", "(saved, state)", outcome)
        return bool(outcome[0]), str(outcome[1])

    def restore_state(self, saved: bool, state: str) -> None:
        """See the base class."""
        self._call("restore_state", saved, state)

    def checkout(self, minor_version: str) -> None:
        """See the base class."""
        self._call("checkout", minor_version)


def _takes_path(function: Callable[..., Any]) -> bool:
    parameters = list(inspect.signature(function).parameters)
    return bool(parameters) and "path" in parameters[0]
