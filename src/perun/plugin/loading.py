"""Imports a plugin from a file outside of any installed package, and says where a plugin went wrong."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from perun.core.errors import NoProfile, PerunError, Terminated
from perun.plugin.versions import Vcs

FAMILIES: Mapping[str, str] = {
    "collect": "collector",
    "postprocess": "postprocessor",
    "view": "view",
    "check": "check",
    "workload": "workload generator",
    "vcs": "version control system",
    "harness": "harness",
    "importer": "importer",
    "exporter": "exporter",
}
"""Families of plugins: the folder (and package) that holds them, and what one of them is called."""

_PERUN = str(Path(__file__).parents[1])


def load_file(name: str, file: Path) -> ModuleType:
    """The module in `file` under the full `name`, e.g. `perun.collect.mycollector`.

    That is the name it has where it is written into Perun itself (manual 4.2), so its own imports work
    unchanged. The same file is not run twice; another file of that name takes the place of the first.
    """
    known = sys.modules.get(name)
    if known is not None and known.__file__ == str(file):
        return known
    _forget(name)
    folders = [str(file.parent)] if file.name == "__init__.py" else None
    spec = spec_from_file_location(name, file, submodule_search_locations=folders)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no Python module")
    parent, _, stem = name.rpartition(".")
    family = import_module(parent)
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        _forget(name)
        raise
    setattr(family, stem, module)
    return module


def _forget(name: str) -> None:
    for loaded in list(sys.modules):
        if loaded == name or loaded.startswith(name + "."):
            del sys.modules[loaded]


def describe(problem: BaseException) -> str:
    """One line on what was raised and where, e.g. `ZeroDivisionError: division by zero (run.py, line 7)`.

    The place is the last line of the plugin itself, not one of a library that it called.
    """
    if isinstance(problem, PerunError):
        return problem.message
    if isinstance(problem, SyntaxError):
        return f"SyntaxError: {problem.msg} ({problem.filename}, line {problem.lineno})"
    text = str(problem).strip().partition("\n")[0]
    message = f"{type(problem).__name__}: {text}" if text else type(problem).__name__
    place = _place(problem)
    return f"{message} ({place})" if place else message


def _place(problem: BaseException) -> str:
    """File and line of the last step in the folder where the plugin was entered; empty if it was not."""
    folder = place = ""
    step = problem.__traceback__
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if not folder and not _is_framework_code(file):
            folder = os.path.dirname(file)
        if folder and file.startswith(folder):
            place = f"{file}, line {step.tb_lineno}"
        step = step.tb_next
    return place


def is_of_perun(file: str) -> bool:
    """Whether the file is one of Perun itself, wherever it is installed."""
    return file.startswith(_PERUN + os.sep)


def _is_framework_code(file: str) -> bool:
    """Whether `file` is code that calls plugins: of Perun, of Python's library, or of click."""
    click = sys.modules.get("click")
    if file.startswith(("<", _PERUN)) or (click and file.startswith(os.path.dirname(click.__file__ or "-"))):
        return True
    return file.startswith(os.path.dirname(os.__file__)) and "site-packages" not in file


# Whether a class keeps the contract of its family (see :mod:`perun.plugin.api`).

METHODS: Mapping[str, str] = {
    "collect": "collect",
    "postprocess": "process",
    "view": "render",
    "check": "compare",
    "workload": "generate",
    "harness": "round",
    "importer": "read",
    "exporter": "write",
}
"""The one method of each family of plugins; a version control system is a class of methods."""


def breach(family: str, plugin: object) -> str:
    """What the plugin's class lacks, as a clause for a message; empty if it keeps the contract."""
    if not isinstance(plugin, type):
        return f"PLUGIN must be a class, not {plugin!r}"
    if family == "vcs":
        return _breach_of_vcs(plugin)
    for attribute in ("name", "help", "short") if family == "check" else ("name", "help"):
        if not isinstance(getattr(plugin, attribute, None), str):
            return f"{plugin.__name__}.{attribute} must be text"
    if not callable(getattr(plugin, METHODS[family], None)):
        return f"{plugin.__name__} has no method {METHODS[family]}"
    return _breach_of_params(plugin)


def takes_context(view: Any) -> bool:
    """Whether the view's `render` takes a context; one that needs none may leave out the argument."""
    import inspect

    try:
        inspect.signature(view.render).bind("profile", "params", "out", "ctx")
    except TypeError:
        return False
    except ValueError:  # what is not written in Python need not tell
        pass
    return True


_SHORT = {
    "fast_check": "FAST",
    "growth": "GROW",
    "integral_comparison": "INT",
    "linear_regression": "LREG",
    "local_statistics": "LOC",
    "polynomial_regression": "PREG",
}
"""Short strings that the manual gives in its own way (3.2.13), and of a check whose name is one word."""


def short_string(name: str) -> str:
    """The first letters of the words of a check's name, in capitals: AAT (manual 8.3).

    Five checks have short strings of their own in the manual (3.2.13): FAST, INT, LREG, LOC and PREG.
    """
    known = _SHORT.get(name.replace("-", "_"))
    return known or "".join(word[0] for word in name.replace("-", "_").split("_") if word).upper()


def _breach_of_params(plugin: type) -> str:
    import dataclasses

    from perun.plugin.params import TYPES, specs

    params = getattr(plugin, "Params", None)
    if not isinstance(params, type) or not dataclasses.is_dataclass(params):
        return f"{plugin.__name__}.Params must be a dataclass"
    for spec in specs(params):
        if spec.type not in TYPES:
            return f"{params.__name__}.{spec.name} has the type {spec.type}, which a parameter cannot have"
    return ""


def _breach_of_vcs(plugin: type) -> str:
    if not issubclass(plugin, Vcs):
        return f"{plugin.__name__} must be a subclass of perun.plugin.api.Vcs"
    missing = ", ".join(sorted(plugin.__abstractmethods__))
    if missing:
        return f"{plugin.__name__} does not define {missing}"
    return "" if isinstance(getattr(plugin, "type", None), str) else f"{plugin.__name__}.type must be text"


# What becomes of an exception in the code of a plugin: an error that names the plugin, not Perun.


def failure(on: str, error: type[PerunError], problem: BaseException) -> PerunError:
    """The `error` that tells the user in one line what the plugin's code raised.

    :param on: what failed, e.g. `the collector 'mycollector'`.
    """
    return error(
        f"{on} failed: {describe(problem)}",
        "repair the plugin, or ask its authors; perun -vv shows the traceback",
    )


@contextlib.contextmanager
def errors_of(plugin: object, on: str, error: type[PerunError]) -> Iterator[None]:
    """Turn an exception of the plugin's code into a :func:`failure`.

    Errors of Perun pass, and so does all that a plugin of Perun itself raises: that is a bug of Perun. The
    adapters of the manual's documented API are such; they turn what their plugins raise by themselves.
    """
    try:
        yield
    except (PerunError, Terminated, BrokenPipeError, NoProfile):
        raise
    except Exception as problem:
        module = sys.modules.get(type(plugin).__module__)
        if module is None or is_of_perun(module.__file__ or ""):
            raise
        raise failure(on, error, problem) from problem
