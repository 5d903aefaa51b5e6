"""`perun guard` and `perun lock` on compiled programs, and the grammar of contracts."""

from __future__ import annotations

import math
import os
import re
import shutil
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perun.core.errors import ConfigError
from perun.measurement.contract import GrowthLimit, bounded, growth, like_before, paired, suggested
from perun.profile.changes import DegradationInfo, PerformanceChange
from perun.repository.init import init
from perun.running.guard.contracts import CountBound, LockedShare, PairedShare, contract, read
from shared import conftest_of

_cli = conftest_of("cli")
command, environment, perun = _cli.command, _cli.environment, _cli.perun

SIZES = (100, 200, 400, 800, 1600)
PROGRAM = r"""
#include <stdlib.h>
#include <string.h>

static volatile long sum;
static long known[64];

static void work(long n) { for (long i = 0; i < n; i++) sum += i; }
static long fibonacci(long n, int memo) {
    if (n < 2) return n;
    if (memo && known[n]) return known[n];
    long found = fibonacci(n - 1, memo) + fibonacci(n - 2, memo);
    return known[n] = found;
}
static int less(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

int main(int count, char **words) {
    const char *what = words[1];
    long n = atol(words[2]);
    work(20000);
    if (!strcmp(what, "linear")) work(10 * n);
    if (!strcmp(what, "slower")) work(13 * n);
    if (!strcmp(what, "quadratic")) for (long i = 0; i < n; i++) work(n / 4);
    if (!strcmp(what, "cubic")) for (long i = 0; i < n * n / 100; i++) work(n / 100);
    if (!strcmp(what, "memo")) sum += fibonacci(n, 1);
    if (!strcmp(what, "lost")) sum += fibonacci(n, 0);
    if (!strcmp(what, "once")) free(calloc(n, 16));
    if (!strcmp(what, "each")) for (long i = 0; i < n; i++) free(malloc(16));
    if (!strcmp(what, "sort")) {
        int *all = malloc(n * sizeof *all);
        for (long i = 0; i < n; i++) all[i] = (i * 7919) % n;
        qsort(all, n, sizeof *all, less);
        free(all);
    }
    return 0;
}
"""


@pytest.fixture
def project(
    git_repository: Any, compiled_once: Any, tmp_path: Path, perun: Any, environment: dict[str, str]
) -> Callable[..., Any]:
    """Calls `perun` in a project with the program, after these contracts are written, where there are any."""
    folder = git_repository(commits=1).path
    init(folder, environ=environment)
    source = tmp_path / "work.c"
    source.write_text(PROGRAM)
    shutil.copy(compiled_once("cc", "-O1", "-g", "-fno-builtin", source), folder / "work")

    def call(*words: str, contracts: str = "", **options: Any) -> Any:
        if contracts:
            (folder / "perun-guard.yml").write_text(contracts)
        return perun(*words, cwd=folder, **{"env": {"PERUN_TRUST": "1"} if contracts else {}, **options})

    call.folder = folder  # type: ignore[attr-defined]
    return call


def test_planted_growth_is_named_and_harmless_is_kept(project: Any) -> None:
    lines = [
        "./work linear {n}: instructions grow at most n^1.1 for n 400..6400",
        "./work quadratic {n}: instructions grow at most n^1.1 for n 100..1600",
        "./work cubic {n}: instructions grow at most n^2.2 for n 100..800",
        "./work memo {n}: instructions grow at most n^1.5 for n 4..60",
        "./work lost {n}: instructions grow at most n^3 for n 5, 10, 15, 20, 25",
        "./work sort {n}: instructions grow at most n log n for n 100..1600",
        "./work once {n}: allocations at most 4 for n 100, 1600",
        "./work each {n}: allocations at most 4 for n 100, 200",
        "./work each 300: instructions of main at most 100 M",
        "./work slower 6000: instructions at most 500 k",
        "./work linear 6000: instructions at most 500 k",
    ]
    told = project("guard", "check", "--junit", "j.xml", contracts="\n".join(lines), code=1)
    kept = [line.split()[0] for line in told.lines if line.startswith("  ")]
    assert kept == ["kept", "BROKEN", "BROKEN", "kept", "BROKEN", "kept", "kept", "BROKEN", "kept", "BROKEN",
                    "kept"], told.out  # fmt: skip
    assert told.lines[-1] == "6 kept, 5 BROKEN"
    suite = ElementTree.parse(project.folder / "j.xml").getroot()[0]
    assert suite.attrib["failures"] == "5" and len(suite) == 11
    answer = project("guard", "check", "sort", "--json", env={"PERUN_TRUST": "1"}).json
    (one,) = answer["contracts"]
    assert one["kept"] is True and one["place"] == "perun-guard.yml:6"


def test_a_file_is_made_and_contracts_are_measured(project: Any) -> None:
    assert "made perun-guard.yml" in project("guard", "init").out
    project("guard", "init", code=2, err="there is perun-guard.yml already")
    told = project("guard", "add", "./work each {n}", "--for", "100..1600")
    assert "allocations grow at most n^1.1 for n 100..1600" in told.out
    project(
        "guard",
        "add",
        "./work each {n}",
        "--for",
        "100..1600",
        code=2,
        err="has contracts of ./work each {n}",
    )
    project("guard", "add", "./work linear 500")
    project("guard", "add", "./work linear {n}", code=2, err="which sizes does {n} take?")
    told = project("guard", "check", code=8)
    assert told.out.count(": n, ") == 2 and "the lock has no instructions of ./work linear 500" in told.out
    project("lock")
    assert "error" not in project("guard", "check").out


def test_the_lock_is_the_same_elsewhere_and_names_what_grew(project: Any, tmp_path: Path) -> None:
    project("lock", "./work linear 3000", "./work each 20")
    first = (project.folder / "perun.lock").read_text()
    other = tmp_path / "another" / "much longer folder"
    shutil.copytree(project.folder, other)
    (other / "perun.lock").unlink()
    elsewhere = {"HOME": str(tmp_path / "home"), "LANG": "C", "ANOTHER": "x" * 1000, "PERUN_TRUST": "1"}
    (tmp_path / "home").mkdir()
    os.chmod(other, 0o700)
    project("lock", "./work linear 3000", "./work each 20", env=elsewhere)
    assert (project.folder / "perun.lock").read_text() == first
    assert "0 rows of 2 commands differ" in project("lock", "--check").out
    text = first.replace("instructions of work: ", "instructions of work: 1")
    (project.folder / "perun.lock").write_text(text)
    told = project("lock", "--check")
    assert "- instructions of work: " in told.out
    rows = project("lock", "--check", "--json").json["rows"]
    assert {row["name"] for row in rows} == {"instructions of work"}
    (project.folder / "perun.lock").write_text(first.replace("toolchain: ", "toolchain: other # "))
    assert "counts are not compared, but growth" in project("lock", "--check").err


def test_growth_is_kept_in_the_lock_and_compared_on_any_toolchain(project: Any) -> None:
    project("lock", "./work linear {n}", code=2, err="which sizes does {n} take?")
    project("lock", "./work linear 5", "--for", "1..16", code=2, err="no command has a place")
    project("lock", "--for", "1..16", code=2, err="no command has a place")
    project("lock", "./work each {n}", "./work linear 50", "--for", "400..6400")
    path = project.folder / "perun.lock"
    text = path.read_text()
    assert '"./work each {n}":\n  growth of all' in text
    assert "  growth of instructions for n 400..6400: 1.00\n" in text
    assert "  growth of allocations for n 400..6400: 1.00\n" in text
    path.write_text(
        text.replace("instructions for n 400..6400: 1.00", "instructions for n 400..6400: 0.50")
        .replace("toolchain: ", "toolchain: other # ")
        .replace("peak memory: 0", "peak memory: 9")
    )
    told = project("lock", "--check", code=1)
    assert "+ growth of instructions for n 400..6400: n^0.50 -> n^1.00" in told.out
    assert told.lines[-1] == "1 row of 2 commands differ"


def test_what_cannot_be_measured_is_an_error(project: Any) -> None:
    project("guard", "check", code=5, err="there is no perun-guard.yml")
    told = project("guard", "check", contracts="./nothing 3: instructions at most 5\n", code=8)
    assert "command not found" in told.out
    told = project("guard", "check", contracts="./work linear 3: instructions of nobody at most 5\n", code=8)
    assert "of a function 'nobody'" in told.out
    project("guard", "check", contracts="'': instructions at most 5\n", code=5, err="there is no command")
    (project.folder / "perun-guard.yml").write_bytes(b"# \xff")
    project("guard", "add", "./work linear 3", code=5, err="byte 2 is no UTF-8")
    strange = "./work linear 3: instructions at most 5\n"
    project("guard", "check", "zzz", contracts=strange, code=2, err="has no contract with 'zzz'")
    untrusted = {"PERUN_TRUST": None}
    project("guard", "check", contracts=strange, code=11, err="command: ./work linear 3", env=untrusted)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("time at most 3 s", "bounds a time by itself: it depends on the machine"),
        ("time at most +2 % of the lock", "bounds a time by itself"),
        ("cpu time grows at most n for n 1..16", "bounds a time by itself"),
        ("time of main at most +2 % of v1", "not of 'main'"),
        ("time at most +2 % of v1 for n 1, 2", "has sizes"),
        ("time at most +2 % of v1", "has sizes"),
        ("instructions grow at most n! for n 1..16", "is no order of growth"),
        ("instructions grow at most n", "does not say which sizes"),
        ("instructions grow at most n for m 1..9", "has no place {m}"),
        ("instructions at most many for n 1..16", "is no bound"),
        ("instructions grow at most n for n 16..1", "do not ascend"),
        ("instructions grow at most n for n 1, 2", "growth needs 5 sizes"),
        ("instructions grow at most n for n a..b", "are no sizes"),
    ],
)
def test_a_wrong_contract_is_named(text: str, what: str) -> None:
    with pytest.raises(ConfigError, match=r"perun-guard\.yml:7: ") as error:
        contract("./prog {n}", text, "perun-guard.yml:7")
    assert what in str(error.value)


def test_time_is_bounded_beside_another_version_only() -> None:
    for text, limit in {
        "time at most +5 % of HEAD~1 within 30 s": PairedShare(0.05, "HEAD~1", 30),
        "cpu time at most 50 % of v1.0 within 1.5 min": PairedShare(0.5, "v1.0", 90),
        "time at most +5% of main": PairedShare(0.05, "main"),
    }.items():
        assert contract("./prog 5", text).limit == limit
    for text in ("time at most +0 % of v1", "time at most +5 % of v1 within 0 s"):
        with pytest.raises(ConfigError, match=r"nothing is measured|always differ") as error:
            contract("./prog 5", text)
        assert "write e.g. `time at most +5 % of HEAD~1 within 30 s`" in str(error.value.hint)


@pytest.mark.parametrize(
    ("interval", "word", "kept"),
    [
        ((0.98, 1.04), "NoChange", True),
        ((1.01, 1.04), "NoChange", True),
        ((0.50, 1.04), "Unknown", True),
        ((0.50, 0.60), "SevereOptimization", True),
        ((1.06, 1.20), "Degradation", False),
        ((1.30, 1.40), "SevereDegradation", False),
        ((1.06, 1.20), "MaybeDegradation", None),  # by chance, or in doubt
        ((1.01, 1.06), "MaybeDegradation", None),
        ((0.98, 1.06), "Unknown", None),
        (None, "Unknown", None),
    ],
)
def test_pairs_decide_by_their_interval(
    interval: tuple[float, float] | None, word: str, kept: bool | None
) -> None:
    change = DegradationInfo(
        PerformanceChange[word], "./prog", "1 s", "1.02 s", "ratio", 1.02, rule="measure more",
        values=(1.0, 1.02), unit="s", sizes=(6, 6),
    )  # fmt: skip
    change.interval = interval
    told = paired(change, 0.05)
    assert told.kept is kept and ("measure more" in told.reason) is (kept is None)


def test_time_is_compared_with_another_version_in_pairs(
    git_repository: Any, perun: Any, environment: dict[str, str]
) -> None:
    repository = git_repository()
    slow = "int main(void) {{ for (volatile long i = 0; i < {}; i++) {{}} }}\n"
    build = "cc -O1 -o work work.c\n"
    repository.commit("One", {"work.c": slow.format(2_000_000), "build.sh": build, ".gitignore": "/work\n"})
    repository.git("tag", "one")
    repository.commit("Two", {"work.c": slow.format(8_000_000)})
    init(repository.path, environ=environment)
    perun("config", "set", "execute.pre_run", "[sh build.sh]", cwd=repository.path)
    lines = (
        "./work:\n  - cpu time at most +20 % of one\n  - cpu time at most +2000 % of one\n"
        "  - time at most +3 % of HEAD\n  - time at most +50 % of one within 0.001 s\n"
        "  - time at most +5 % of nowhere\n"
    )
    (repository.path / "perun-guard.yml").write_text(lines)
    repository.git("add", ".")
    repository.git("commit", "--quiet", "-m", "Contracts")

    def check(*words: str, code: int) -> Any:
        return perun("guard", "check", *words, cwd=repository.path, env={"PERUN_TRUST": "1"}, code=code)

    answer = check("--json", code=1).json["contracts"]
    assert [one["kept"] for one in answer] == [False, True, True, None, None], answer
    assert re.search(r"-> .*s, \+\d+ % \[", answer[0]["reason"])
    assert "are the same on both sides" in answer[2]["reason"] and "--always" not in answer[2]["reason"]
    assert "`within`" in answer[3]["reason"] and answer[3]["error"] is None
    assert "nowhere" in answer[4]["error"]
    check("0.001", code=12)
    check("nowhere", code=8)
    assert not perun("status", "--json", cwd=repository.path).json["pending"], "nothing is stored"


def test_contracts_are_read_in_all_forms(tmp_path: Path) -> None:
    file = tmp_path / "perun-guard.yml"
    file.write_text(
        "# a comment\n./a {depth}: instructions grow at most depth^1.5 for depth 1..81\n"
        "'./b --x=1': [allocations at most 3, peak memory at most 1.5 MB]\n./c 5:\n"
        "  - instructions at most +2.5 % of the lock\n"
    )
    first, second, third, fourth = read(file)
    assert first.sizes == (1, 3, 9, 27, 81) and first.limit == GrowthLimit("depth^1.5", 1.5)
    assert first.commands()[2] == "./a 9" and first.place == "perun-guard.yml:2"
    assert isinstance(second.limit, CountBound) and second.limit(0) == 3
    assert isinstance(third.limit, CountBound) and third.limit(0) == 1.5 * 2**20
    assert fourth.limit == LockedShare(0.025)
    many = contract("./a {n}", "allocations at most 3 n + 2 n log n + 0.5 n^2 + 1,000 for n 8, 16").limit
    assert isinstance(many, CountBound) and many(8) == pytest.approx(24 + 16 * math.log(8) + 32 + 1000)


@given(st.text(max_size=60))
def test_any_text_is_a_contract_or_a_named_error(text: str) -> None:
    try:
        contract("./prog {n}", text)
        contract("./prog {n}", f"instructions at most {text} for n 1..16")
    except ConfigError as problem:
        assert problem.message


@example(exponent=1.6623910235904236, factor=1.0, start=0.0)
@given(st.floats(0.5, 3), st.floats(1, 1e4), st.floats(0, 1e6))
def test_powers_are_told_from_others(exponent: float, factor: float, start: float) -> None:
    counts = [start + factor * size**exponent for size in SIZES]
    if factor * (SIZES[-1] ** exponent - SIZES[0] ** exponent) > 0.05 * counts[0]:
        assert growth(SIZES, counts, GrowthLimit("", exponent + 0.15), 0.99).kept is True
        assert growth(SIZES, counts, GrowthLimit("", exponent - 0.15), 0.99).kept is False
        power = float(suggested(SIZES, counts, 0.99).removeprefix("n^"))
        assert exponent <= power <= exponent + 0.2
        assert growth(SIZES, counts, GrowthLimit("", power), 0.99).kept is True


def test_counts_beside_what_they_may_be() -> None:
    assert growth(SIZES, [5, 5, 5, 5, 5], GrowthLimit("1"), 0.99).kept is True
    assert growth(SIZES, [9, 8, 7, 6, 5], GrowthLimit("1"), 0.99).kept is True
    assert bounded([1, 2], [3, 9], CountBound(((4, "n"),)), "B").reason == "9 B at 2, 12.5 % above 8 B"
    assert like_before(100, 103, 0.02, "") == (False, "100 -> 103 (+3.0 %)")
    assert like_before(0, 0, 0, "").kept is True and like_before(0, 1, 1, "").kept is False
