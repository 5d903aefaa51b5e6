"""The three experiments of the manual's chapter 10: programs with `std::regex_search`, and their tables."""

import os
import random
import resource
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from perun.fuzz import rules
from perun.fuzz.campaign import Campaign
from perun.fuzz.coverage.api import Coverage, CoverageTarget
from perun.fuzz.coverage.opening import open_coverage
from perun.fuzz.executing import Pool
from perun.fuzz.findings import CampaignJournal, MemberTest
from perun.fuzz.seeds import SearchSettings, SeedFile

CPU: Final = 220.0
"""Seconds of two cores that a search has: 110 s of a machine that does nothing else."""
HANG: Final = 10
"""Seconds of a core after which a run is a hang."""
_TICKS: Final = os.sysconf("SC_CLK_TCK")

SOURCE = r"""
#include <fstream>
#include <iostream>
#include <regex>
#include <string>
int main(int argc, char **argv) {
    std::ifstream file(argv[2]);
    std::string line;
    std::regex expression(argv[1]);
    long found = 0;
    while (std::getline(file, line))
        found += std::regex_search(line, expression);
    std::cout << found << "\n";
}
"""
COMPILED = ("-std=c++17", "--coverage", "-O1")
"""Options of g++."""
EXPRESSIONS = {
    "trim": r"^[\s\u200c]+|[\s\u200c]+$",
    "email": r"^([a-zA-Z0-9])(([\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+[.]{1}"
    r"(([a-z]{2,3})|([a-z]{2,3}[.]{1}[a-z]{2,3}))$",
    "classname": r"^(([a-z])+.)+[A-Z]([a-z])+$",
}
_GUARD = Path(__file__).parents[2] / "src" / "perun" / "core" / "process" / "native" / "guard.c"
SEEDS = {
    "trim": SeedFile(Path("guard.c"), _GUARD.read_bytes()[:3534] + b"\n"),  # as large as that of the manual
    "email": SeedFile(Path("email.txt"), b"spse1po@gmail.com\n"),
    "classname": SeedFile(Path("name.txt"), b"myAwesomeClassName\n"),
}


class Case(NamedTuple):
    """A row of a table: the largest size, the ratio that it has, and whether there is a hang, too."""

    program: str
    size: int
    ratio: float
    hangs: bool = False


SMALL = (Case("trim", 5000, 24.32), Case("email", 18, 70.83), Case("classname", 19, 14.31))
LARGE = (
    Case("trim", 10_000, 41.38),
    Case("email", 36, 4470.72, hangs=True),
    Case("classname", 38, 2383.99),
    Case("classname", 78, 5056.67, hangs=True),
)


def begin(
    case: Case, program: Path, folder: Path, number: int, *, seconds: float = 1e9,
    executions: int | None = None, jobs: int = 2, hang: float = HANG
) -> tuple[Campaign, Callable[[], None]]:  # fmt: skip
    """A campaign of the case, with the program compiled, that :func:`search` makes search, and what ends it.

    :param folder: an empty one. :param number: seed of the random numbers.
    """

    def maker(job: int) -> Callable[[], Coverage]:
        scratch = folder / f"scratch-{job}"
        scratch.mkdir()
        argv = (str(program), EXPRESSIONS[case.program])
        return partial(open_coverage, CoverageTarget(argv, "file", folder, dict(os.environ), ".txt"), scratch)

    seed = SEEDS[case.program]
    pool = Pool([maker(job) for job in range(jobs)], os.environ)
    journal = CampaignJournal(folder / "out")
    limit = max(case.size, len(seed.data))
    settings = SearchSettings(seconds, limit, hang, executions=executions, tests_between=False)
    campaign = Campaign(
        rules.for_seed(seed.data, seed.path), pool, settings, lambda *given: MemberTest("ok"), journal,
        random.Random(number),
    )  # fmt: skip

    def end() -> None:
        pool.close()
        journal.close()

    return campaign, end


def is_reached(case: Case, campaign: Campaign) -> bool:
    """Whether the campaign has found what the table has."""
    return campaign.found.best >= case.ratio and bool(campaign.found.hangs or not case.hangs)


def search(
    case: Case, campaign: Campaign, program: Path, folder: Path, cpu: float = CPU
) -> tuple[bool, float]:
    """Search until the row of the table is reached, the campaign is over, or so many seconds of the processor
    are spent; whether it was reached, and how many were. What only seems to hang, as others compute, is taken
    back.

    :param folder: an empty one, or that of :func:`begin`.
    """
    begun, looked, spent, found = cpu_seconds(), time.monotonic(), 0.0, campaign.found
    is_confirmed = False
    for _ in campaign.run((SEEDS[case.program],)):
        if found.hangs and not is_confirmed:
            is_confirmed = is_hang(case, program, folder, found.hangs[-1].data)
            if not is_confirmed:
                found.hangs.clear()
        if is_reached(case, campaign):
            break
        if time.monotonic() - looked > 1:
            looked, spent = time.monotonic(), cpu_seconds() - begun
        if spent > cpu:
            break
    return is_reached(case, campaign), cpu_seconds() - begun


def is_hang(case: Case, program: Path, folder: Path, data: bytes) -> bool:
    """Whether the program computes for longer than :data:`HANG` with an input, however busy all cores are."""
    path = folder / "hang.txt"
    path.write_bytes(data)
    ran = subprocess.run(
        [program, EXPRESSIONS[case.program], path], cwd=folder, stdout=subprocess.DEVNULL, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (HANG, HANG + 1)),
    )  # fmt: skip
    return ran.returncode == -signal.SIGXCPU


def cpu_seconds() -> float:
    """Of this process, its descendants, and those of them that have ended and were waited for."""
    spent: dict[int, int] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                fields = (folder / "stat").read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            values = fields.rpartition(")")[2].split()
            children[int(values[1])].append(int(folder.name))
            spent[int(folder.name)] = sum(map(int, values[11:15]))
    waiting, total = [os.getpid()], 0
    while waiting:
        pid = waiting.pop()
        total += spent.get(pid, 0)
        waiting += children[pid]
    return total / _TICKS
