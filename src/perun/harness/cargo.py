"""The benchmarks of Rust that `cargo bench` runs: of criterion, of divan, and of the standard library.

Cargo builds them and says which programs they are. Perun starts each program itself, once for each benchmark
of a round; what they are asked and what they answer is in `_rust`. A program runs in the folder of its
package, as it does by cargo, but without the search paths of libraries that build scripts have added.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from perun.harness import _rust
from perun.harness._common import files_with, needed, output_of
from perun.plugin.params import param
from perun.plugin.suites import (
    BenchmarkCommand,
    BenchmarkRound,
    HarnessContext,
    NamedBenchmark,
    SuiteProgram,
)

_DEFINES: Final = re.compile(r"\bcriterion_main!|\bCriterion::default\b|\bdivan::(?:main|bench)\b|#\[bench\]")
_CRITERION: Final = re.compile(r"criterion[@ ](\d+)\.(\d+)\.")
_WHOLE_SECONDS_BEFORE: Final = (0, 5)
_HINT: Final = "run `cargo bench --no-run` there by hand; `--arguments` gives it more words"


@dataclass(frozen=True)
class CargoParams:
    """How to build the benchmarks."""

    arguments: tuple[str, ...] = param(
        (),
        short="-a",
        metavar="<word>",
        help="Give `cargo bench` this word when it builds, e.g. `--workspace` or `--features=fast`; may be "
        "repeated.",
    )


class CargoHarness:
    """Runs the benchmarks of criterion, divan and `#[bench]`, one process for each.

    - criterion (0.3 to 0.7) chooses the number of operations itself, by the time that it is given, so that a
      number that is asked for is not used; the answer has what it took, the mean of its samples. A benchmark
      group that sets its own times or number of samples keeps them. Its results go to a folder of the round,
      and those of the project are left alone.
    - divan (0.1.18 or newer) takes exactly the number. Of three samples that share the time the middle one
      counts, so that the first, cold one does not. Its times have four digits. Where the project has its
      `AllocProfiler`, allocations and their bytes are counted.
    - `#[bench]` chooses the number and the time itself and says neither: its answer is one sample of one
      operation, the median that it prints. It needs a nightly toolchain, as the project configures it.
    """

    name: ClassVar[str] = "cargo"
    help: ClassVar[str] = "Runs the benchmarks of criterion, divan and `#[bench]` in projects of Rust."
    command: ClassVar[str] = "cargo bench"
    Params: ClassVar[type] = CargoParams

    def detect(self, folder: Path) -> Sequence[str]:
        """The sources that use one of the three."""
        return files_with(folder, (".rs",), lambda path, text: _DEFINES.search(text) is not None)

    def build(self, folder: Path, params: CargoParams, ctx: HarnessContext) -> Sequence[SuiteProgram]:
        """Build in `target` of the folder, whatever the user has configured: the results of another working
        copy would be overwritten otherwise."""
        cargo = needed("cargo", "install Rust: https://rustup.rs")
        words = ["bench", "--no-run", "--message-format=json-render-diagnostics", *params.arguments]
        environ = {"CARGO_TARGET_DIR": str(folder / "target")}
        messages: list[Any] = []
        for package in _packages(folder, self.detect(folder)):
            messages += _messages(output_of(ctx, [cargo, *words], package, environ, _HINT))
        programs = sorted(_programs(messages, ctx), key=lambda one: (one.name, one.argv))
        names = Counter(program.name for program in programs)
        return [one if names[one.name] == 1 else _with_package(one) for one in programs]

    def list(
        self, program: SuiteProgram, params: CargoParams, ctx: HarnessContext
    ) -> Sequence[NamedBenchmark]:
        """What the program says that it has; of divan without those that are ignored."""
        return _rust.LIBRARIES[program.data["library"]].names(program, ctx)

    def round(
        self,
        program: SuiteProgram,
        iterations: Mapping[NamedBenchmark, int],
        params: CargoParams,
        ctx: HarnessContext,
    ) -> Mapping[NamedBenchmark, BenchmarkRound]:
        """Measure each benchmark in a process of its own; divan looks for a number in several."""
        measure = _rust.LIBRARIES[program.data["library"]].measure
        return {one: measure(program, one, number, ctx) for one, number in iterations.items()}

    def one(
        self,
        program: SuiteProgram,
        benchmark: NamedBenchmark,
        iterations: int,
        params: CargoParams,
        ctx: HarnessContext,
    ) -> BenchmarkCommand:
        """Divan makes any number; the others one operation, as they do to test benchmarks."""
        return _rust.LIBRARIES[program.data["library"]].one(program, benchmark, iterations)


def _packages(folder: Path, files: Iterable[str]) -> list[Path]:
    """Where cargo is started: the outermost folders with a `Cargo.toml` of those that hold the files."""
    found: dict[Path, None] = {}
    for name in files:
        above = [folder / parent for parent in Path(name).parents][::-1]
        found |= dict.fromkeys([one for one in above if (one / "Cargo.toml").is_file()][:1])
    return list(found)


def _with_package(program: SuiteProgram) -> SuiteProgram:
    return program._replace(name="/".join((program.folder.name, program.data["kind"], program.name)))


def _messages(text: str) -> Iterator[Mapping[str, Any]]:
    """The messages of cargo: lines of JSON, among which build scripts and wrappers may write others."""
    for line in text.splitlines():
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(message, dict) and message.get("reason") == "compiler-artifact":
            yield message


def _programs(messages: Sequence[Mapping[str, Any]], ctx: HarnessContext) -> Iterator[SuiteProgram]:
    versions = _CRITERION.findall(" ".join(str(message.get("package_id")) for message in messages))
    whole = any((int(major), int(minor)) < _WHOLE_SECONDS_BEFORE for major, minor in versions)
    seen = set()
    for message in messages:
        target, executable = message.get("target", {}), message.get("executable")
        kind = "".join(target.get("kind", ())[:1])
        if not executable or executable in seen or not message.get("profile", {}).get("test"):
            continue
        seen.add(executable)
        name, folder = target.get("name", ""), Path(message["manifest_path"]).parent
        library = _rust.library_of(Path(executable))
        if library:
            data = {"library": library, "kind": kind, "target": name, "whole_seconds": whole}
            yield SuiteProgram((executable,), folder, name, data)
        elif kind == "bench":
            ctx.note(f"{name}: this benchmark uses none of criterion, divan and #[bench], and is left out")


PLUGIN = CargoHarness
