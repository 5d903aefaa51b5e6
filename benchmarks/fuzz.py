"""How much slower the worst input is that a search of a minute finds: ours beside AFL++ with its scheduling.

    python benchmarks/fuzz.py [SECONDS [PROGRAM...]]

Both begin with the same seed, on the same program compiled by afl-clang-fast, whose counters both read;
inputs have at most so many bytes. What each has found is then run once more, in the program compiled with
gcov, whose executed lines decide. Without AFL++ (`apt-get install afl++`) it says so.
"""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from perun.fuzz import findings, rules
from perun.fuzz.campaign import Campaign
from perun.fuzz.coverage.api import Coverage, CoverageTarget
from perun.fuzz.coverage.inputs import build_flags
from perun.fuzz.coverage.opening import open_coverage
from perun.fuzz.executing import SerialExecutor
from perun.fuzz.findings import CampaignJournal
from perun.fuzz.seeds import SearchSettings, SeedFile
from report import Place, Row

PROGRAMS: Final = Path(__file__).parents[1] / "tests" / "fuzzing" / "programs"
SECONDS: Final = 60.0
LIMIT: Final = 2000
"""Bytes of an input."""
HANG: Final = 2.0


class Subject(NamedTuple):
    """A program, and a harmless input to begin with."""

    name: str
    seed: bytes
    suffix: str


def _chunk(kind: bytes, size: int) -> bytes:
    return struct.pack(">H", size) + kind + b"\1" * size


SUBJECTS: Final = (
    Subject("hash_table", b"the quick brown fox jumps over the lazy dog\n", ".txt"),
    Subject("insertion_sort", b"1 5 3 2 4 6 7\n", ".txt"),
    Subject("quick_sort", b"1 5 3 2 4 6 7\n", ".txt"),
    Subject(
        "chunks",
        b"\x89PNX" + b"".join(_chunk(*one) for one in ((b"IHDR", 13), (b"IDAT", 40), (b"IEND", 0))),
        ".png",
    ),
)


class Found(NamedTuple):
    """The best ratio of executed lines to the seed, and the executions that it took; None without AFL++."""

    ours: float
    executions: int
    afl: float | None
    afl_executions: int


def fuzz(place: Place) -> Iterator[Row]:
    """The seed's executed lines as a share of those of the worst input that was found: less is better."""
    if not has_afl():
        print("fuzz: AFL++ is not installed, so there is nothing to be compared with")
        return
    for subject in SUBJECTS:
        found = measure(place.folder / f"fuzz-{subject.name}", subject, SECONDS)
        assert found.afl is not None
        what = f"fuzz: {subject.name}, lines of the seed / most lines"
        yield Row(what, 1 / found.ours, 1 / found.afl, "afl-fuzz", 1, unit="")


def has_afl() -> bool:
    """Whether AFL++ is installed."""
    return all(shutil.which(one) for one in ("afl-fuzz", "afl-clang-fast"))


def measure(folder: Path, subject: Subject, seconds: float) -> Found:
    """Search with both, one after the other, and judge what they found by the lines of gcov."""
    folder.mkdir(parents=True)
    seeds = folder / "seeds"
    seeds.mkdir()
    (seeds / f"seed{subject.suffix}").write_bytes(subject.seed)
    judge = _opened(folder, _compiled(folder / "judge", subject, *_flags("gcov")), subject)
    with closing(judge):
        judge.start()
        if not has_afl():
            program = _compiled(folder / "counting", subject, *_flags("gcov"))
            ours, executions = _searched(folder, program, subject, seconds)
            return Found(_best(judge, subject, ours), executions, None, 0)
        program = _compiled(folder / "afl", subject, "afl-clang-fast", "-g -O1")
        ours, executions = _searched(folder, program, subject, seconds)
        theirs, afl_executions = _afl(folder, program, seeds, seconds)
        return Found(_best(judge, subject, ours), executions, _best(judge, subject, theirs), afl_executions)


def _flags(backend: str) -> tuple[str, str]:
    made = build_flags(backend)  # type: ignore[arg-type]
    return made.cc, made.flags


def _compiled(program: Path, subject: Subject, compiler: str, flags: str) -> Path:
    source = PROGRAMS / f"{subject.name}.c"
    environ = {**os.environ, "AFL_QUIET": "1"}
    subprocess.run([compiler, *flags.split(), "-o", program, source], check=True, env=environ)
    return program


def _opened(folder: Path, program: Path, subject: Subject) -> Coverage:
    scratch = folder / f"scratch-{program.name}"
    scratch.mkdir()
    return open_coverage(
        CoverageTarget((str(program),), "file", folder, dict(os.environ), subject.suffix), scratch
    )


def _searched(folder: Path, program: Path, subject: Subject, seconds: float) -> tuple[list[bytes], int]:
    """What our search finds, without the time that measuring, minimising and modelling would take."""
    path = folder / f"own{subject.suffix}"
    path.write_bytes(subject.seed)
    executor = SerialExecutor(_opened(folder, program, subject))
    journal = CampaignJournal(folder / "own")
    campaign = Campaign(
        rules.for_seed(subject.seed, path),
        executor,
        SearchSettings(seconds, LIMIT, HANG, tests_between=False),
        lambda member, seed, left: findings.MemberTest("ok"),
        journal,
        random.Random(1),
    )
    try:
        for _ in campaign.run([SeedFile(path, subject.seed)]):
            pass
    finally:
        journal.close()
        executor.close()
    return [one.data for one in campaign.found.interesting], campaign.executions


def _afl(folder: Path, program: Path, seeds: Path, seconds: float) -> tuple[list[bytes], int]:
    """The queue of afl-fuzz."""
    output = folder / "afl-output"
    environ = {
        **os.environ,
        "AFL_NO_UI": "1",
        "AFL_SKIP_CPUFREQ": "1",
        "AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES": "1",
        "AFL_NO_AFFINITY": "1",
    }
    subprocess.run(
        ["afl-fuzz", "-s", "1", "-V", f"{seconds:.0f}", "-G", str(LIMIT), "-t", f"{HANG * 1000:.0f}",
         "-i", seeds, "-o", output, "--", program, "@@"],
        env=environ, check=True, capture_output=True,
    )  # fmt: skip
    lines = (output / "default" / "fuzzer_stats").read_text(encoding="utf-8").splitlines()
    stats = {key.strip(): value.strip() for key, value in (line.split(":", 1) for line in lines)}
    files = (path for path in (output / "default" / "queue").iterdir() if path.is_file())
    return [path.read_bytes() for path in files], int(stats["execs_done"])


def _best(judge: Coverage, subject: Subject, inputs: Iterable[bytes]) -> float:
    """The most executed lines of an input that ends, to those of the seed."""
    base = judge.run(subject.seed, 10 * HANG).total
    ran = (judge.run(data, 10 * HANG) for data in inputs)
    return max((one.total for one in ran if one.outcome == "ok"), default=base) / base


def main() -> None:
    """Measure, and print a line for each program."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    chosen = [one for one in SUBJECTS if not sys.argv[2:] or one.name in sys.argv[2:]]
    with tempfile.TemporaryDirectory() as folder:
        for subject in chosen:
            found = measure(Path(folder, subject.name), subject, seconds)
            ours = f"{found.ours:,.1f}x in {found.executions:,} executions"
            if found.afl is None:
                print(f"{subject.name:16} {ours}; AFL++ is not installed: nothing to compare with")
                continue
            afl = f"afl-fuzz {found.afl:,.1f}x in {found.afl_executions:,} executions"
            print(f"{subject.name:16} {ours}; {afl}; {found.ours / found.afl:.2f} times", flush=True)


if __name__ == "__main__":
    main()
