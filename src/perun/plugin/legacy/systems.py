"""Version control systems of the documented API: a module of functions (manual 13.1)."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any, ClassVar

from perun.core.errors import PluginError, VersionControlError
from perun.plugin.api import MajorVersion, MinorVersion, Vcs
from perun.plugin.legacy.units import errors_as, in_environment, short, summary

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
