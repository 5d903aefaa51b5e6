"""Imports a plugin from a file outside of any installed package, and says where a plugin went wrong."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from perun.errors import PerunError

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
