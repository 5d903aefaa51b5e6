"""What `perun fuzz` finds in a minute, and says of it, in programs whose worst case is known.

    python benchmarks/fuzz_orders.py [--seconds 60] [--jobs 2] [--keep FOLDER] [PROGRAM...]

Each program of fuzz_orders.c has a known order of growth, a known thing that it grows with, and a worst input
of the largest size. A row says what the campaign says of its best result, whether order and thing are right,
and the executed lines of the slowest input beside those of the known one; where that is a hang, a hang is as
much. Beside the row is the time of the processor that the whole campaign has got: other programs may take the
cores as well, which no timeout in seconds makes good.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

from perun.fuzz.coverage.api import CoverageTarget
from perun.fuzz.coverage.opening import open_coverage

SOURCE: Final = Path(__file__).with_name("fuzz_orders.c")
HANG: Final = 2.0
_NEAR: Final = 0.1
"""How far the degree of a polynomial may be from the order that is right."""
PROSE: Final = b"the quick brown fox jumps over the lazy dog\nand the other fox sleeps\n"
NUMBERS: Final = b"1 5 3 2 4 6 7\n"


class Subject(NamedTuple):
    """A program: a harmless seed, the most bytes of an input, the order and the thing that are right (regular
    expressions), and the worst input of that size that is known; None where that hangs."""

    name: str
    seed: bytes
    size: int
    order: str
    thing: str
    worst: bytes | None


def _words(size: int, gap: bytes, width: int = 3) -> bytes:
    """Different words of as many letters."""
    letters = b"abcdefghijklmnopqrstuvwxyz"
    words = map(bytes, itertools.product(letters, repeat=width))
    return gap.join(itertools.islice(words, size // (width + 1)))


def _anagrams(size: int) -> bytes:
    """Different words whose letters have the same sum."""
    letters = range(ord("!"), ord("~"))
    words = (bytes(one) for one in itertools.product(letters, repeat=3) if sum(one) == 240)
    return b" ".join(itertools.islice(words, size // 4))


SUBJECTS: Final = (
    Subject("different_lines", PROSE, 2000, "quadratic", "line", _words(2000, b"\n", 2)),
    Subject("different_words", PROSE, 2000, "quadratic", "words", _words(2000, b" ", 2)),
    Subject(
        "different_keys", b"name=fox;legs=4;tail=yes;colour=red\n", 2000, "quadratic",
        'different .*";"', _words(2000, b";", 2),
    ),
    Subject("appended_lines", PROSE, 2000, "quadratic", "line", b"\n" * 2000),
    Subject("nested_brackets", b"a(b(c)d)(e)\n", 2000, "quadratic", r"nested|\(", b"(" * 1333 + b")" * 667),
    Subject("same_words", PROSE, 2000, "quadratic", 'repetitions of ". ?|words', b"a " * 1000),
    Subject("trimmed_spaces", b"int a;  /* b */ \n", 2000, "quadratic", "spaces", b" " * 1999 + b"\n"),
    Subject(
        "insertion_sort", NUMBERS, 2000, "quadratic", "numbers in descending|nested|as many of each",
        b"".join(b"%d " % digit * 100 for digit in range(9, -1, -1)),
    ),
    Subject("quick_sort", NUMBERS, 2000, "quadratic", "numbers|[0-9]", b"1 " * 1000),
    Subject("hash_collisions", PROSE, 2000, "quadratic", "words", _anagrams(2000)),
    Subject("removed_fields", b"name,age,town,street\n", 2000, "quadratic", ",",
            b"," * 2000),
    Subject("counted_quotes", b'say "yes" or "no"\n', 2000, "quadratic", r'"""|\\"', b'"' * 2000),
    Subject("open_comments", b"int a; /* b */ int c;\n", 2000, "quadratic", r"/\*", b"/*a" * 666),
    Subject("longest_repeated", b"banana bandana\n", 300, "cubic", "letters|characters|spaces|digits|repet",
            b"a" * 300),
    Subject("equal_triples", NUMBERS, 400, "cubic", 'repetitions of "|digits', b"1 " * 200),
    Subject("backtracking_nesting", b"a+(b+c)+d\n", 2000, "exponential", r"\(", None),
    Subject("backtracking_quantifier", b"aab aaa\n", 60, "exponential", '"a"', None),
    Subject("backtracking_alternatives", b"xxy\nxxxx\n", 2000, "exponential", '"x"|"xx"', None),
    Subject("subset_sum", b"3 34 4 12 5 2\n", 2000, "exponential", "[0-9]|numbers", None),
    Subject("letters", PROSE, 2000, "linear", "", b"a" * 2000),
)  # fmt: skip


class Found(NamedTuple):
    """What a campaign says of its best result; the share of the known cost, and seconds of the processor."""

    subject: Subject
    said: str
    share: float
    hangs: int
    cpu: float
    executions: int

    @property
    def is_right(self) -> bool:
        """Whether order and thing are right."""
        order, _, thing = self.said.partition(" in ")
        power = re.match(r"polynomial of degree (\S+)", order)
        if power:  # words become longer with their number, so that what is quadratic in them is less exact
            order = next((name for name, b in (("linear", 1), ("quadratic", 2), ("cubic", 3))
                          if abs(float(power[1]) - b) <= _NEAR), order)  # fmt: skip
        return re.match(self.subject.order, order) is not None and bool(
            re.search(self.subject.thing, thing.partition(": exponent")[0].partition(": base")[0])
        )


def measure(folder: Path, subject: Subject, seconds: float, number: int) -> Found:
    """One campaign of the verb, as users run it."""
    folder.mkdir(parents=True)
    program = folder / "program"
    flags = ("-g", "-O1", "--coverage", f"-DPROGRAM={subject.name}", "-w")
    subprocess.run(["gcc", *flags, "-o", program, SOURCE], check=True, cwd=folder)
    (folder / "seed.txt").write_bytes(subject.seed)
    environ = {**os.environ, "PERUN_TRUST": "1"}
    commit = "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m a"
    for command in ("git init -q", commit, "perun init"):
        subprocess.run(command.split(), check=True, cwd=folder, env=environ, capture_output=True)
    limits = f"-t {seconds:g} --max-size {subject.size} --hang-timeout {HANG:g} --seed {number}"
    command = f"perun fuzz -b {program} -w seed.txt -o results --no-plotting {limits}"
    with (folder / "said").open("w") as said:
        started = subprocess.Popen(command.split(), cwd=folder, env=environ, stdout=said, stderr=said)
        _, status, usage = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode:
        raise SystemExit(f"{subject.name}: {(folder / 'said').read_text(encoding='utf-8')}")
    told = json.loads((folder / "results" / "results.json").read_text(encoding="utf-8"))
    results: list[dict[str, Any]] = told["results"]
    hangs = sum(one["kind"] == "hang" for one in results)
    most = max((one["lines"] for one in results if one["kind"] == "slow"), default=0)
    said = next((one["growth"]["text"] for one in results if (one["growth"] or {}).get("text")), "")
    share = _share(folder, program, subject, most, hangs, said)
    return Found(subject, said, share, hangs, usage.ru_utime + usage.ru_stime, told["executions"])


def _share(folder: Path, program: Path, subject: Subject, most: int, hangs: int, said: str) -> float:
    """Of the cost that is known to be possible; 1 for a hang where that is one, found or told."""
    if subject.worst is None:
        return float(hangs > 0 or "the program hangs from" in said)
    assert len(subject.worst) <= subject.size
    scratch = folder / "scratch"
    scratch.mkdir()
    target = CoverageTarget((str(program),), "file", folder, dict(os.environ), ".txt")
    with closing(open_coverage(target, scratch)) as judge:
        judge.start()
        return most / judge.run(subject.worst, 10 * HANG).total


def main() -> None:
    """A row for each program; at the end how many are right."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("programs", nargs="*")
    given = parser.parse_args()
    chosen = [one for one in SUBJECTS if not given.programs or one.name in given.programs]
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(given.jobs) as pool:
        folder = given.keep or Path(temporary)
        begun = time.monotonic()
        running = [pool.submit(measure, folder / one.name, one, given.seconds, given.seed) for one in chosen]
        rows = []
        for one in running:
            row = one.result()
            rows.append(row)
            judged = "right" if row.is_right else "WRONG"
            numbers = f"{row.share:.2f} | {row.hangs} | {row.executions:,} | {row.cpu:.0f}"
            print(f"| {row.subject.name} | {row.said or 'nothing'} | {judged} | {numbers} |", flush=True)
        print(f"{sum(row.is_right for row in rows)} of {len(rows)} right, "
              f"{sum(row.share >= 0.5 for row in rows)} with at least half of the known cost, "
              f"{time.monotonic() - begun:.0f} s", file=sys.stderr)  # fmt: skip


if __name__ == "__main__":
    main()
