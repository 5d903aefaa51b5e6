"""Inside of the measured program: starts the recording, and then runs the program as the interpreter does.

What the program sees is what it sees alone: `sys.argv`, `sys.path`, `__main__`, the traceback of an exception
that ends it, its exit code. This imports nothing but the standard library and its neighbours (see `agent`).
"""

from __future__ import annotations

import atexit
import io
import os
import sys
from types import CodeType, ModuleType, TracebackType
from typing import Any

from . import hooks
from .limits import Limits
from .recorder import open_recorder

_OWN_WORDS = 3
"""Words of the command line in front of those of the program: the agent, the folder and the options."""
_SPAWNED = """\
from importlib import import_module
from types import ModuleType
import sys
try:
    sys.modules[{package!r}] = ModuleType({package!r})
    sys.modules[{package!r}].__path__ = {here!r}
    import_module({package!r} + ".program").start({folder!r}, {text!r})
except Exception:
    pass
del import_module, ModuleType, sys
"""
"""What a Python that `multiprocessing` spawns does first. It runs as well where it cannot be recorded."""
_HERE = os.path.join(os.path.dirname(__file__), "")


def main() -> None:
    """Run the program that the command line names, see `agent`."""
    folder, options, words = sys.argv[1], sys.argv[2], sys.argv[_OWN_WORDS:]
    original = getattr(sys, "orig_argv", [])  # since Python 3.10
    del original[len(original) - len(words) - _OWN_WORDS : len(original) - len(words)]
    is_safe = bool(getattr(sys.flags, "safe_path", False) or sys.flags.isolated)
    if not is_safe:
        del sys.path[0]
    start(folder, options)
    try:
        run(words, is_safe)
    except SystemExit:
        raise
    except BaseException:
        _hide_own_frames()
        raise


def start(folder: str, text: str) -> None:
    """Record the calls of this process from now on.

    :param folder: for the recordings. :param text: the options, see :func:`options_text`.
    """
    given: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, _, value = line.partition("=")
        given.setdefault(name, []).append(value)
    limits = Limits.parse(given.get("limit", []), float(given["burst"][0]))
    native = {"yes": True, "no": False}.get(given["native"][0])
    recorder = open_recorder(folder, native=native)
    # Called last of all that is registered so, and when other threads have ended.
    atexit.register(recorder.close)
    here = [os.path.dirname(__file__)]
    code = _SPAWNED.format(package=__package__, here=here, folder=recorder.folder, text=text)
    hooks.install(recorder, limits or None, all_calls=given["all_calls"][0] == "yes", spawned=code)


def run(words: list[str], is_safe: bool) -> None:
    """Run a program: a file, a folder or archive with a `__main__`, or the value of `-m` or `-c`.

    :param is_safe: do not put the place of the program in front of the path of imports (`-P`, `-I`).
    """
    module = sys.modules["__main__"] = ModuleType("__main__")
    module.__dict__["__builtins__"] = sys.modules["builtins"]
    if sys.version_info < (3, 14):
        vars(module)["__annotations__"] = {}
    sys.argv = words
    if words[0] == "-c":
        _run_text(module, words, is_safe)
    elif words[0] == "-m":
        sys.argv = ["-m", *words[2:]]
        if not is_safe:
            sys.path.insert(0, os.getcwd())
        _run_module(words[1], True)
    elif _is_importable(words[0]):
        sys.path.insert(0, os.path.abspath(words[0]))
        _run_module("__main__", False)
    else:
        _run_file(module, words[0], is_safe)


def _run_text(module: ModuleType, words: list[str], is_safe: bool) -> None:
    sys.argv = ["-c", *words[2:]]
    if not is_safe:
        sys.path.insert(0, "")
    text = words[1]
    if sys.version_info >= (3, 14):
        import textwrap

        text = textwrap.dedent(text)
    if sys.version_info >= (3, 13):  # tracebacks show its lines
        import linecache

        linecache.cache["<string>"] = len(text), None, (text + "\n").splitlines(keepends=True), "<string>"
    module.__loader__ = sys.modules["_frozen_importlib"].BuiltinImporter
    exec(compile(text + "\n", "<string>", "exec", dont_inherit=True), module.__dict__)


def _run_module(name: str, is_named: bool) -> None:
    import runpy

    # What the interpreter itself calls; `run_module` would give back the old `__main__` before the program's
    # threads end.
    runpy._run_module_as_main(name, is_named)  # type: ignore[attr-defined]


def _run_file(module: ModuleType, path: str, is_safe: bool) -> None:
    from importlib.machinery import SourceFileLoader, SourcelessFileLoader

    file = os.path.join(os.getcwd(), path)
    if not is_safe:
        sys.path.insert(0, os.path.dirname(os.path.realpath(file)))
    try:
        with io.open_code(file) as stream:
            source = stream.read()
    except OSError as problem:
        name = getattr(sys, "orig_argv", [sys.executable])[0]
        message = f"{name}: can't open file {file!r}: [Errno {problem.errno}] {problem.strerror}\n"
        sys.stderr.write(message)
        sys.exit(2)
    loader: Any = SourceFileLoader
    code: CodeType | None
    if path.endswith(".pyc"):
        loader = SourcelessFileLoader
        code = SourcelessFileLoader("__main__", file).get_code("__main__")
    else:
        code = compile(source, file, "exec", dont_inherit=True)
    del source
    module.__file__ = file
    module.__dict__["__cached__"] = None
    module.__loader__ = loader("__main__", file)
    assert code
    exec(code, module.__dict__)


def _is_importable(path: str) -> bool:
    """Whether it is a folder or an archive, from which modules are imported."""
    for hook in sys.path_hooks:
        try:
            hook(path)
        except ImportError:
            continue
        return True
    return False


def _hide_own_frames() -> None:
    """Let the traceback of the exception that ends the program begin where it begins alone."""
    hook = sys.excepthook

    def shown(kind: Any, problem: BaseException, trace: TracebackType | None) -> None:
        _clean(problem, set())
        hook(kind, problem, problem.__traceback__)

    sys.excepthook = shown


def _clean(problem: BaseException | None, known: set[int]) -> None:
    """Take the frames of this package out of the traceback, and of those of the exceptions before it."""
    while problem is not None and id(problem) not in known:
        known.add(id(problem))
        kept = []
        trace = problem.__traceback__
        while trace is not None:
            if not trace.tb_frame.f_code.co_filename.startswith(_HERE):
                kept.append(trace)
            trace = trace.tb_next
        for one, following in zip(kept, [*kept[1:], None]):  # noqa: B905 - Python 3.9 knows no `strict`
            one.tb_next = following
        problem.__traceback__ = kept[0] if kept else None
        _clean(problem.__cause__, known)
        problem = problem.__context__
