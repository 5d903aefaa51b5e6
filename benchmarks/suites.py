"""`perun compare --suite` with suites of which the truth is known, beside benchstat's test on its samples.

    python benchmarks/suites.py [--harness NAME ...] [--comparisons N] [--budget SECONDS] [--loads N ...]
        [--write docs/benchmarks.md]

Suites of eight equal benchmarks of 0.1 ms: two versions that differ by a comment, and two of which one
benchmark, another one each time, does 10 % or 30 % more steps. benchstat's Mann-Whitney test at 5 % has the
times that Perun stored. Of a suite of 200 equal ones of 1 ms, those are counted that 60 s show to differ by
less than 3 %.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from scipy import stats

from perun.repository.repository import open_repository
from report import Count, Place, renewed, table
from verdicts import load

BENCHMARKS: Final = 8
ALPHA: Final = 0.05
"""Level of the test of benchstat."""
STEPS: Final = (0, 10, 30)
"""Percent by which one benchmark takes longer."""
LARGE, LARGE_SECONDS = 200, 60.0
RUNS: Final = 3
"""Comparisons of each step, at most."""
LOADS: Final = (0, 4)
"""Busy loops beside."""
PYTHON: Final = Path(__file__).parents[1] / "build" / "harnesses" / "bin" / "python"
CRATES: Final = Path("/usr/share/cargo/registry")
"""Where Debian has the sources of crates."""
_CHANGED: Final = ("Degradation", "Optimization", "SevereDegradation", "SevereOptimization")

Files = Mapping[str, str]
Lengths = Sequence[int]


class Settings(NamedTuple):
    """Harnesses (all that there are, where none is named), comparisons of equal versions, seconds of each."""

    harnesses: Sequence[str] = ()
    comparisons: int = 5
    budget: float = 60.0
    loads: Sequence[int] = LOADS


class Kind(NamedTuple):
    """A suite in one language.

    :param steps: of a benchmark of 0.1 ms or so. :param files: of a version whose benchmarks have so many
        steps; the first one gets the comments. :param comment: what begins one.
    :param parameters: of the harness. :param build: commands of `execute.pre_run`.
    """

    steps: int
    files: Callable[[Lengths], Files]
    comment: str = "//"
    parameters: Mapping[str, Any] = {}
    build: Sequence[str] = ()


def _go(lengths: Lengths) -> Files:
    functions = "".join(
        f"func BenchmarkB{number}(b *testing.B) {{\n\tfor i := 0; i < b.N; i++ {{\n\t\twork({length})\n"
        "\t}\n}\n"
        for number, length in enumerate(lengths)
    )
    work = (
        "var sink uint64\n\nfunc work(n int) {\n\tx := sink | 1\n\tfor i := 0; i < n; i++ {\n"
        "\t\tx = x*6364136223846793005 + 1442695040888963407\n\t}\n\tsink = x\n}\n"
    )
    text = f'package made\n\nimport "testing"\n\n{work}\n{functions}'
    return {"made_test.go": text, "go.mod": "module made\n\ngo 1.18\n"}


def _google(lengths: Lengths) -> Files:
    functions = "".join(
        f"static void b{number}(benchmark::State& state) {{ work(state, {length}); }}\n"
        f"BENCHMARK(b{number});\n"
        for number, length in enumerate(lengths)
    )
    return {
        "made.cc": "#include <benchmark/benchmark.h>\nstatic void work(benchmark::State& state, long n) {\n"
        "  unsigned long long x = 1;\n  for (auto _ : state) {\n"
        "    for (long i = 0; i < n; i++) x = x * 6364136223846793005ULL + 1;\n"
        "    benchmark::DoNotOptimize(x);\n  }\n}\n"
        f"{functions}BENCHMARK_MAIN();\n",
        ".gitignore": "made\n",
    }


_PYTHON_WORK: Final = "def work(steps):\n    x = 1\n    for number in range(steps):\n        x ^= number\n\n"


def _pytest(lengths: Lengths) -> Files:
    functions = "\n".join(f"def test_b{number}(benchmark):\n    benchmark(work, {length})\n"
                          for number, length in enumerate(lengths))  # fmt: skip
    return {"test_made.py": f"{_PYTHON_WORK}\n{functions}"}


def _asv(lengths: Lengths) -> Files:
    functions = "\n".join(f"def time_b{number}():\n    work({length})\n"
                          for number, length in enumerate(lengths))  # fmt: skip
    return {
        "benchmarks/made.py": f"{_PYTHON_WORK}\n{functions}",
        "benchmarks/__init__.py": "",
        "asv.conf.json": '{"version": 1, "repo": "."}\n',
    }


def _cargo(lengths: Lengths) -> Files:
    calls = "".join(f'    c.bench_function("b{number}", |b| b.iter(|| work(black_box({length}))));\n'
                    for number, length in enumerate(lengths))  # fmt: skip
    files = {
        "benches/made.rs": "use criterion::{black_box, criterion_group, criterion_main, Criterion};\n"
        "fn work(n: u64) -> u64 {\n    let mut x = 1u64;\n"
        "    for _ in 0..n { x = black_box(x.wrapping_mul(6364136223846793005).wrapping_add(1)); }\n"
        f"    x\n}}\nfn all(c: &mut Criterion) {{\n{calls}}}\n"
        "criterion_group!(benches, all);\ncriterion_main!(benches);\n",
        "Cargo.toml": '[package]\nname = "made"\nversion = "0.1.0"\nedition = "2021"\n'
        '[lib]\npath = "lib.rs"\n[[bench]]\nname = "made"\nharness = false\n'
        '[dev-dependencies]\ncriterion = { version = "*", default-features = false }\n',
        "lib.rs": "",
        ".gitignore": "target\n",
    }
    if list(CRATES.glob("criterion-[0-9]*")):
        source = f'replace-with = "debian"\n[source.debian]\ndirectory = "{CRATES}"\n'
        files[".cargo/config.toml"] = f"[source.crates-io]\n{source}"
    return files


_COMPILER: Final = "g++ -O1 -o made made.cc -lbenchmark -lpthread"
KINDS: Final = {
    "go": Kind(80_000, _go),
    "google_benchmark": Kind(80_000, _google, build=(_COMPILER,)),
    "pytest_benchmark": Kind(2_000, _pytest, "#", {"python": str(PYTHON)}),
    "asv": Kind(2_000, _asv, "#", {"python": sys.executable}),
    "cargo": Kind(40_000, _cargo),
}


class Suite:
    """A repository with a suite, in versions of other lengths.

    :raises OSError: or :raises RuntimeError: where its harness does not work here.
    """

    def __init__(self, perun: str, folder: Path, name: str, count: int = BENCHMARKS, scale: int = 1) -> None:
        """:param scale: of the steps of each benchmark."""
        self._perun = perun
        self._folder = folder
        self._kind = KINDS[name]
        self._count = count
        self._steps = scale * self._kind.steps
        self._versions = 0
        folder.mkdir(parents=True)
        self._git("init", "-q")
        self._git("config", "user.email", "a@localhost")
        self._git("config", "user.name", "a")
        self._call("init")
        harness = {"name": name, "params": dict(self._kind.parameters)}
        self._call("config", "set", "harnesses", json.dumps([harness]))
        self._call("config", "set", "execute.pre_run", json.dumps(list(self._kind.build)))
        self.compared(*self.add(0), budget=40.0)

    def add(self, step: int, changed: int = 0) -> tuple[str, str]:
        """Two versions, in the later of which this benchmark has so many percent more steps."""
        equal = [self._steps] * self._count
        longer = [*equal]
        longer[changed] = round(longer[changed] * (1 + step / 100))
        return self._committed(equal), self._committed(longer)

    def compared(self, base: str, head: str, budget: float, *options: str) -> dict[int, str]:
        """What is said of the time of each benchmark, by its number.

        :raises RuntimeError: where one cannot be measured.
        """
        options = ("--suite", "--budget", str(budget), "--json", *options)
        told = json.loads(self._call("compare", *options, base, head))
        (comparison,) = told["comparisons"]
        times = [one for one in comparison["changes"] if one["from_value"]["unit"] == "s"]
        if len(times) != self._count:
            raise RuntimeError(
                f"{len(times)} benchmarks were measured: {comparison['reason'] or comparison['notes']}"
            )
        return {_number(one["location"]): one["result"] for one in times}

    def differing(self, base: str, head: str) -> set[int]:
        """The benchmarks whose stored times the Mann-Whitney test tells apart."""
        (old, new) = map(self._samples, (base, head))
        return {one for one in old if stats.mannwhitneyu(old[one], new[one]).pvalue < ALPHA}

    def _samples(self, version: str) -> dict[int, list[float]]:
        store = open_repository(self._folder, os.environ).store
        found = {}
        for entry in store.indexes.read(version):
            if entry.head.type == "time":
                resources = store.objects.get(entry.checksum).all_resources()
                found[_number(entry.head.args)] = [float(one["amount"]) for _, one in resources]
        return found

    def _committed(self, lengths: Lengths) -> str:
        files = dict(self._kind.files(lengths))
        self._versions += 1
        files[next(iter(files))] += f"{self._kind.comment} version {self._versions}\n"
        for name, text in files.items():
            (self._folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self._folder / name).write_text(text)
        self._git("add", "-A")
        self._git("commit", "-q", "-m", f"Version {self._versions}")
        return self._git("rev-parse", "HEAD")

    def _call(self, *words: str) -> str:
        environ = {**os.environ, "PERUN_TRUST": "1"}
        done = subprocess.run([self._perun, *words], cwd=self._folder, env=environ, capture_output=True)
        if done.returncode:
            raise RuntimeError(f"perun {' '.join(words)}: {done.stderr.decode()}")
        return done.stdout.decode()

    def _git(self, *words: str) -> str:
        done = subprocess.run(["git", *words], cwd=self._folder, check=True, capture_output=True, text=True)
        return done.stdout.strip()


def _number(name: str) -> int:
    """Of the benchmark: the digits after the last `b` of its name."""
    return int(name.lower().rpartition("b")[2])


def suites(place: Place, settings: Settings | None = None) -> Iterator[Count]:
    """What is said of equal versions, and of those with one slower benchmark."""
    settings = settings or Settings()
    rng = random.Random(41)
    for name in settings.harnesses or KINDS:
        folder = place.folder / f"suites-{name}"
        try:
            suite = Suite(place.perun, folder, name)
        except (RuntimeError, OSError) as problem:
            print(f"{name} is left out: {problem}", file=sys.stderr)
            continue
        for loops in settings.loads:
            beside = f"beside {loops} busy loops" if loops else "no busy loops"
            with load(loops):
                yield from _counts(f"{name}, {beside}", suite, settings, rng)
        shutil.rmtree(folder)
    if "google_benchmark" in (settings.harnesses or KINDS):
        yield from _large(Suite(place.perun, place.folder / "suites-large", "google_benchmark", LARGE, 10))


def _large(suite: Suite) -> Iterator[Count]:
    begun = time.monotonic()
    words = suite.compared(*suite.add(0), LARGE_SECONDS, "--threshold", "0.03")
    took = time.monotonic() - begun
    settled = sum(word == "NoChange" for word in words.values())
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    what = f"google_benchmark, {LARGE} benchmarks of 1 ms, {took:.0f} s with builds, {memory:.0f} MB"
    yield Count(f"{what}: no change above 3 %", settled, LARGE)


def _counts(name: str, suite: Suite, settings: Settings, rng: random.Random) -> Iterator[Count]:
    for step in STEPS:
        of = min(settings.comparisons, RUNS) if step else settings.comparisons
        said: Counter[str] = Counter()
        begun = time.monotonic()
        for _ in range(of):
            changed = rng.randrange(BENCHMARKS)
            versions = suite.add(step, changed)
            words = suite.compared(*versions, settings.budget)
            named = {one for one, word in words.items() if word in _CHANGED}
            told = suite.differing(*versions)
            truth = {changed} if step else set()
            for who, found in (("perun", named), ("benchstat", told)):
                said[f"{who} wrong"] += len(found - truth)
                said[f"{who} exact"] += found == truth
                said[f"{who} found"] += truth <= found
            said["settled"] += sum(word in (*_CHANGED, "NoChange") for word in words.values())
        took = f"{(time.monotonic() - begun) / of:.0f} s each"
        beside = {one: f"benchstat: {said[f'benchstat {one}']}" for one in ("wrong", "exact", "found")}
        equal = BENCHMARKS * of
        if not step:
            what = f"{name}, {took}: equal benchmarks, called changed"
            yield Count(what, said["perun wrong"], equal, most=0, others=beside["wrong"])
            yield Count(f"{name}: equal benchmarks, definite answer", said["settled"], equal)
            continue
        what = f"{name}, {took}: one of {BENCHMARKS} slower by {step} %"
        yield Count(f"{what}, it and no other is named", said["perun exact"], of, others=beside["exact"])
        yield Count(f"{what}, it is named", said["perun found"], of, others=beside["found"])


def main() -> None:
    """Measure, and print the table or write it down."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--harness", nargs="+", choices=KINDS, default=())
    options.add_argument("--comparisons", type=int, default=Settings().comparisons)
    options.add_argument("--budget", type=float, default=Settings().budget)
    options.add_argument("--loads", type=int, nargs="+", default=LOADS)
    options.add_argument("--write", type=Path)
    given = options.parse_args()
    perun = str(Path(sys.executable).with_name("perun"))
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="perun-suites-") as folder:
        settings = Settings(given.harness, given.comparisons, given.budget, given.loads)
        counts = []
        for one in suites(Place(perun, "", Path(folder), 1), settings):
            print(one.line, flush=True)
            counts.append(one)
    if given.write:
        chosen = f"--harness {' '.join(given.harness)} " if given.harness else ""
        command = (
            f"python benchmarks/suites.py {chosen}--comparisons {given.comparisons} --budget "
            f"{given.budget:g} --loads {' '.join(map(str, given.loads))}"
        )
        head = (
            f"{datetime.date.today()}, by `{command}`, load of the machine {before:.1f} at the beginning: "
            f"{' '.join(__doc__.split(chr(10) * 2)[-1].split())}\n\n"
        )
        section = {"suites": f"{head}{table(counts)}\n"}
        given.write.write_text(renewed(given.write.read_text("utf-8"), section), "utf-8")


if __name__ == "__main__":
    main()
