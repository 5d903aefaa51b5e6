"""Finds and measures the benchmarks of an asv suite, in the Python of its project (3.9 or newer).

It is a script that imports the standard library alone: `runner.py REQUEST [FD]`. The request is a JSON file,
see :func:`main`. As asv does it (https://asv.readthedocs.io, "Writing benchmarks"), each benchmark runs in
a process of its own, which has the suite imported already, unless that is to be a fresh one; and for each
sample setup runs first, then the benchmark as often as it has iterations, and then teardown.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import importlib.machinery
import importlib.util
import inspect
import itertools
import json
import math
import os
import pickle
import pkgutil
import re
import resource
import select
import signal
import subprocess
import sys
import textwrap
import time
import timeit
import traceback
import types
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

KINDS = {"mem": "Mem", "peakmem": "PeakMem", "time": "Time", "timeraw": "Timeraw", "track": "Track"}
_ADDRESS = re.compile(r"^(<.*) at 0x[\da-fA-F]+>$")
_MOST = 10**9


class SkipNotImplemented(NotImplementedError):
    """Raised anywhere in a benchmark to skip it, in suites that cannot import asv's own."""


class AsvBenchmark:
    """A benchmark with its attributes, which are those of the function, its object, and its module."""

    def __init__(self, name: str, kind: str, module: str, sources: Sequence[Any]) -> None:
        self.name, self.kind, self.module, self.sources, self.function = (
            name,
            kind,
            module,
            sources,
            sources[0],
        )
        self.setup_cache = self.attribute("setup_cache", None)
        values = list(self.attribute("params", ()))
        if values and not isinstance(values[0], (tuple, list)):
            values = [values]
        self.combinations = list(itertools.product(*values))
        self.parameters = [", ".join(one) for one in itertools.product(*map(_labels, values))]

    def attribute(self, name: str, default: Any) -> Any:
        """The nearest of this name; setup may have changed it."""
        found = (getattr(source, name, None) for source in self.sources)
        return next((one for one in found if one is not None), default)

    def hooks(self, name: str) -> list[Callable[..., Any]]:
        """Those of all sources, in any case: `setup`, `setUp`."""
        found = (getattr(one, key) for one in self.sources for key in dir(one) if key.lower() == name)
        return [one for one in found if callable(one)]


def _labels(values: Sequence[Any]) -> list[str]:
    labels = [_ADDRESS.sub(r"\1>", repr(value)) for value in values]
    often, seen = Counter(labels), Counter[str]()
    unique = []
    for label in labels:
        unique.append(f"{label} ({seen[label]})" if often[label] > 1 else label)
        seen[label] += 1
    return unique


# -- finding


class SuiteFinder:
    """Imports the package of the benchmarks, and nothing else of the folder that it lies in."""

    def __init__(self, suite: Path) -> None:
        self.suite = suite

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """As finders of `sys.meta_path` do."""
        if name != self.suite.name:
            return None
        return importlib.machinery.PathFinder.find_spec(name, [str(self.suite.parent)], target)


def stand_in() -> None:
    """Let suites import the marks of asv where it is not installed."""
    if importlib.util.find_spec("asv_runner") is not None:
        return

    def marking(**attributes: Any) -> Callable[[Any], Any]:
        def mark(one: Any) -> Any:
            for name, value in attributes.items():
                setattr(one, name, value)
            return one

        return mark

    def parameterize(values: dict[str, Any]) -> Callable[[Any], Any]:
        params = list(values.values())
        return marking(params=params if len(params) > 1 else params[0], param_names=list(values))

    marks: Any = types.ModuleType("asv_runner.benchmarks.mark")
    marks.SkipNotImplemented = SkipNotImplemented
    marks.skip_benchmark = marking(skip_benchmark=True)
    marks.skip_benchmark_if = lambda condition: marking(**({"skip_benchmark": True} if condition else {}))
    marks.skip_for_params = lambda params: marking(skip_params=params)
    marks.skip_params_if = lambda params, condition: marking(**({"skip_params": params} if condition else {}))
    marks.timeout_at = marks.timeout_func_at = marks.timeout_class_at = lambda seconds: marking(
        timeout=seconds
    )
    marks.parameterize = marks.parameterize_func_with = marks.parameterize_class_with = parameterize
    marks.benchmark = marking
    package, benchmarks = types.ModuleType("asv_runner"), types.ModuleType("asv_runner.benchmarks")
    package.__path__, benchmarks.__path__ = [], []
    sys.modules.update({one.__name__: one for one in (package, benchmarks, marks)})


def modules(name: str, problems: list[str]) -> Iterator[types.ModuleType]:
    """Import a package with all its modules, in order; those that cannot be are problems."""
    try:
        module = importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        traceback.print_exc()
        problems.append(f"{name} cannot be imported: {described(error)}")
        return
    yield module
    if hasattr(module, "__path__"):
        for one in sorted(pkgutil.iter_modules(module.__path__, name + "."), key=lambda one: one.name):
            yield from modules(one.name, problems)


def benchmarks_of(module: types.ModuleType, problems: list[str]) -> Iterator[AsvBenchmark]:
    """The benchmarks of a module, in the order of their definition; of a class by name."""
    inside = module.__name__.split(".")[1:]
    for key, value in list(vars(module).items()):
        if key.startswith("_"):
            continue
        is_suite = inspect.isclass(value) and not inspect.isabstract(value)
        functions = inspect.getmembers(value, inspect.isroutine) if is_suite else [(key, value)]
        for name, function in functions:
            own_name = getattr(function, "benchmark_name", None)
            kind = _kind(str(own_name or name).rsplit(".", 1)[-1])
            wanted = inspect.isfunction(function) or inspect.ismethod(function)
            if not kind or not wanted or getattr(function, "skip_benchmark", False):
                continue
            full = own_name or ".".join(
                [*inside, *([value.__name__, name] if is_suite else [value.__name__])]
            )
            try:
                instance = value() if is_suite else None
                sources = [getattr(instance, name), instance, module] if is_suite else [value, module]
                yield AsvBenchmark(str(full), kind, module.__name__, sources)
            except Exception as error:
                traceback.print_exc()
                problems.append(f"{full}: {described(error)}")


def _kind(name: str) -> str:
    return next((kind for kind, camel in KINDS.items() if re.match(f"{camel}[A-Z_].|{kind}_.", name)), "")


# -- measuring


def measured(benchmark: AsvBenchmark, request: dict[str, Any], cache: Path) -> dict[str, Any]:
    """What one benchmark says in this process; `failure` where nothing.

    :param cache: has what setup_cache has returned. :raises Exception: whatever the benchmark does.
    """
    values = benchmark.combinations[benchmark.parameters.index(request["parameters"])]
    if values in [tuple(one) for one in benchmark.attribute("skip_params", ())]:
        return {"failure": "skipped"}
    if benchmark.setup_cache is not None:
        kept = pickle.loads(cache.read_bytes())
        values = values if kept is None else (kept, *values)
    setups, teardowns = benchmark.hooks("setup")[::-1], benchmark.hooks("teardown")

    def run(hooks: Sequence[Callable[..., Any]]) -> None:
        for hook in hooks:
            hook(*values)

    def again() -> None:
        run(teardowns)
        run(setups)

    skipped = None
    try:
        run(setups)
    except NotImplementedError as error:
        skipped = error
    try:
        if skipped is None:
            return _MEASURES[benchmark.kind](benchmark, values, request, again)
    except NotImplementedError as error:
        if all(one.__name__ != "SkipNotImplemented" for one in type(error).__mro__):
            raise
        skipped = error
    finally:
        run(teardowns)
    return {"failure": f"skipped: {skipped}".rstrip(": ")}


def _times(
    benchmark: AsvBenchmark, request: dict[str, Any], first: int, sample: Callable[[int], float]
) -> dict[str, Any]:
    """Samples of so many iterations: those asked for, of the suite, or as many as take the time given, which
    several samples share where the suite does not say how many there are.

    One sample is thrown away before, or as many as `warmup_time` says.
    """
    repeat, warmup = benchmark.attribute("repeat", 0), benchmark.attribute("warmup_time", -1)
    samples = max(1, int(repeat[0] if isinstance(repeat, (tuple, list)) else repeat))
    if request["alone"]:
        samples, warmup = 1, 0
    number = request["iterations"] or int(benchmark.attribute("number", first))
    several = not (request["alone"] or repeat or first or benchmark.attribute("number", 0))
    started, is_warm = time.perf_counter(), warmup == 0
    if not number:
        number, is_warm = _calibrated(sample, request["seconds"] / samples), True
    while not is_warm or time.perf_counter() - started < warmup:
        sample(number)
        is_warm = True
    if several:
        samples = min(request["samples"], number)
    each = number // samples if several else number
    with importlib.import_module("_counting").counted() if request["marked"] else contextlib.nullcontext():
        taken = [sample(each) / each for _ in range(samples)]
    return {"iterations": number, "values": [{"type": "time", "subtype": "", "unit": "s", "samples": taken}]}


def _calibrated(sample: Callable[[int], float], seconds: float) -> int:
    number, at_first = 1, 0.0
    while number < _MOST:
        started = time.perf_counter()
        taken = sample(number)
        whole = time.perf_counter() - started
        at_first = at_first or whole  # with setup, which is not repeated
        taken = max(taken, whole - at_first)  # a clock that a suite brings may stand still
        if seconds / 10 <= taken < seconds * 10:
            taken = min(taken, sample(number) or taken)  # another program may have had the processor
        if taken >= seconds / 10:
            return max(1, round(number * seconds / taken))
        number *= 10
    return number


def _time(
    benchmark: AsvBenchmark, values: Any, request: dict[str, Any], again: Callable[[], None]
) -> dict[str, Any]:
    function = functools.partial(benchmark.function, *values) if values else benchmark.function
    is_set_up = [True]

    def setup() -> None:
        if not is_set_up.pop():
            again()
        is_set_up.append(False)

    timer = timeit.Timer(function, setup, benchmark.attribute("timer", timeit.default_timer))
    return _times(benchmark, request, 0, timer.timeit)


def _timeraw(
    benchmark: AsvBenchmark, values: Any, request: dict[str, Any], _: Callable[[], None]
) -> dict[str, Any]:
    environ = {str(name): str(value) for name, value in (benchmark.attribute("env", None) or {}).items()}

    def sample(number: int) -> float:
        code = benchmark.function(*values)
        statement, setup = map(textwrap.dedent, code if isinstance(code, tuple) else (code, ""))
        program = (
            f"from timeit import timeit\nprint('\\n', timeit({statement!r}, {setup!r}, number={number}))"
        )
        done = subprocess.run(
            [sys.executable, "-"],
            input=program,
            capture_output=True,
            text=True,
            env={**os.environ, **environ},
        )
        sys.stderr.write(done.stderr)
        if done.returncode:
            raise RuntimeError((done.stderr.strip() or f"status {done.returncode}").splitlines()[-1])
        return float(done.stdout.split()[-1])

    return _times(benchmark, request, 1, sample)


def _bytes(subtype: str, size: int, is_count: bool = False) -> dict[str, Any]:
    value = {"type": "memory", "subtype": subtype, "unit": "B", "samples": [size], "is_count": is_count}
    return {"iterations": 1, "values": [value]}


def _mem(benchmark: AsvBenchmark, values: Any, *_: Any) -> dict[str, Any]:
    try:
        sizeof = importlib.import_module("pympler.asizeof").asizeof
    except ImportError:
        return {"failure": f"the size of objects needs pympler: `{sys.executable} -m pip install pympler`"}
    one = benchmark.function(*values)
    return _bytes("size", sizeof([one, copy.copy(one)]) - sizeof([one, one]), True)


def _peakmem(benchmark: AsvBenchmark, values: Any, *_: Any) -> dict[str, Any]:
    benchmark.function(*values)
    try:  # what getrusage says includes the process that has started this one
        status = Path("/proc/self/status").read_text()
        return _bytes("peak", int(status.split("VmHWM:")[1].split()[0]) * 1024)
    except (OSError, IndexError):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return _bytes("peak", most * (1 if sys.platform == "darwin" else 1024))


def _track(benchmark: AsvBenchmark, values: Any, *_: Any) -> dict[str, Any]:
    number = float(benchmark.function(*values))
    if not math.isfinite(number):
        return {"failure": "skipped" if math.isnan(number) else f"the value is {number}"}
    unit = str(benchmark.attribute("unit", ""))
    value = {"type": "printed", "subtype": "", "unit": unit, "samples": [number]}
    return {"iterations": 1, "values": [value]}


_MEASURES: dict[str, Callable[..., dict[str, Any]]] = {
    "mem": _mem,
    "peakmem": _peakmem,
    "time": _time,
    "timeraw": _timeraw,
    "track": _track,
}


def described(error: BaseException) -> str:
    """One line that says what was raised."""
    return " ".join(f"{type(error).__name__}: {error}".rstrip(": ").split())[:300]


# -- processes


def in_process(work: Callable[[], dict[str, Any]] | Sequence[str], limit: float) -> dict[str, Any]:
    """The answer of a copy of this process that does the work, or of a program, in so many seconds."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    if callable(work):
        process = os.fork()
        if not process:
            os.close(reading)
            answer(work, writing)
    else:
        os.set_inheritable(writing, True)
        process = os.posix_spawn(work[0], [*work, str(writing)], os.environ)
    os.close(writing)
    said, deadline = b"", time.monotonic() + limit
    try:
        while not said.endswith(b"\n"):
            if not select.select([reading], [], [], max(0.0, deadline - time.monotonic()))[0]:
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
                return {"failure": f"it took longer than {limit:g} s"}
            more = os.read(reading, 1 << 16)
            if not more:
                break
            said += more
    finally:
        os.close(reading)
    _, status = os.waitpid(process, 0)
    if said.endswith(b"\n"):
        return dict(json.loads(said))
    signalled = os.WIFSIGNALED(status)
    number = os.WTERMSIG(status) if signalled else os.WEXITSTATUS(status)
    return {"failure": f"its process ended with {'signal' if signalled else 'status'} {number}"}


def answer(work: Callable[[], dict[str, Any]], writing: int) -> None:
    """Do the work, write its answer as a line, and end the process at once."""
    try:
        said = work()
    except BaseException as error:
        traceback.print_exc()
        said = {"failure": described(error)}
    sys.stdout.flush()
    sys.stderr.flush()
    with os.fdopen(writing, "wb") as stream:
        stream.write(json.dumps(said).encode() + b"\n")
    os._exit(0)


def measure(request: dict[str, Any], found: dict[tuple[str, str], AsvBenchmark]) -> Iterator[dict[str, Any]]:
    """Measure what the request names, one after the other, each in a process of its own."""
    prepared: dict[Any, tuple[Path, str]] = {}
    for name, parameters, iterations in request["chosen"]:
        said: dict[str, Any] = {"failure": "the suite does not have it"}
        benchmark = found.get((name, parameters))
        if benchmark is not None:
            limit = float(benchmark.attribute("timeout", request["timeout"]))
            key = (getattr(benchmark.setup_cache, "__code__", None), type(benchmark.sources[1]))
            one = {**request, "name": name, "parameters": parameters, "iterations": iterations}
            if key not in prepared:
                folder, failure = Path(request["scratch"], str(len(prepared))), ""
                folder.mkdir(exist_ok=True)
                if benchmark.setup_cache is not None:
                    most = float(getattr(benchmark.setup_cache, "timeout", limit))
                    failure = separate({**one, "step": "cache", "folder": str(folder)}, benchmark, most)[
                        "failure"
                    ]
                prepared[key] = folder, failure
            folder, failure = prepared[key]
            said = {"failure": f"setup_cache: {failure}"}
            if not failure:
                said = separate({**one, "step": "run", "folder": str(folder)}, benchmark, limit)
        yield {"name": name, "parameters": parameters, **said}


def separate(request: dict[str, Any], benchmark: AsvBenchmark, limit: float) -> dict[str, Any]:
    """Do a step in a copy of this process, or in a fresh one where memory counts or the suite wants it; here,
    where the request says `alone`, as somebody records this process."""
    if request["alone"]:
        return perform(request, benchmark)
    if not request["spawn"] and (request["step"] == "cache" or benchmark.kind != "peakmem"):
        return in_process(functools.partial(perform, request, benchmark), limit)
    file = Path(request["folder"] + ".json")
    file.write_text(json.dumps({**request, "module": benchmark.module}))
    return in_process([sys.executable, __file__, str(file)], limit)


def perform(request: dict[str, Any], benchmark: AsvBenchmark | None = None) -> dict[str, Any]:
    """Do a step in this process: run setup_cache and keep what it returns, or measure."""
    if benchmark is None:
        benchmark = found_in(importlib.import_module(request["module"]), [])[
            request["name"], request["parameters"]
        ]
    os.chdir(request["folder"])
    cache = Path(request["folder"] + ".pickle")
    if request["step"] == "run":
        return measured(benchmark, request, cache)
    cache.write_bytes(pickle.dumps(benchmark.setup_cache()))
    return {"failure": ""}


def found_in(module: types.ModuleType, problems: list[str]) -> dict[tuple[str, str], AsvBenchmark]:
    """The benchmarks of a module by name and parameters, the first of each."""
    found: dict[tuple[str, str], AsvBenchmark] = {}
    for benchmark in benchmarks_of(module, problems):
        for parameters in benchmark.parameters:
            found.setdefault((benchmark.name, parameters), benchmark)
    return found


def main(file: str, writing: str = "") -> None:
    """Do what a request says: `suite` is the folder of the benchmarks, `scratch` an empty one, `out` the file
    for the answer, a line of JSON for the names, and one for each benchmark of `chosen`.

    :param writing: the descriptor for the answer of a single step.
    """
    request = json.loads(Path(file).read_text())
    here = str(Path(__file__).parent)
    if request["marked"]:
        importlib.import_module("_counting")
    sys.path[:] = [one for one in sys.path if one != here]
    suite = Path(request["suite"])
    sys.meta_path.insert(0, SuiteFinder(suite))
    stand_in()
    os.chdir(request["scratch"])
    if writing:
        answer(functools.partial(perform, request), int(writing))
    problems: list[str] = []
    found: dict[tuple[str, str], AsvBenchmark] = {}
    for module in modules(suite.name, problems):
        for key, benchmark in found_in(module, problems).items():
            found.setdefault(key, benchmark)
    with open(request["out"], "w") as out:
        out.write(json.dumps({"names": list(found), "problems": problems}) + "\n")
        for said in measure(request, found):
            out.write(json.dumps(said) + "\n")
            out.flush()
            if request["alone"] and said.get("failure"):
                sys.exit(said["failure"])


if __name__ == "__main__":
    main(*sys.argv[1:])
