"""`perun fuzz` from the outside: a real program, its folder of results, and what goes wrong."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from compiling import CompilerCache
from perun.fuzz import results

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")

SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) {
    static char text[70000];
    FILE *file = argc > 1 ? fopen(argv[1], "rb") : stdin;
    size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
    volatile long found = 0;
    for (size_t start = 0; start < size; start++)
        for (size_t end = start; end < size && text[end] == ' '; end++)
            found++;
    if (strstr(text, "   \n\n"))
        abort();
    return 0;
}
"""


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    own = tmp_path_factory.getbasetemp()
    cache = CompilerCache((own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "compiled")
    source = tmp_path_factory.mktemp("sources") / "spaces.c"
    source.write_text(SOURCE)
    return lambda *options: cache("gcc", "-O1", "-g", *options, source)


@pytest.fixture
def fuzzed(project, compiled):
    """A project with a seed, and the command that reads it."""
    (project.path / "seeds").mkdir()
    (project.path / "seeds" / "words.txt").write_text("one two  three\n")
    return str(compiled("--coverage"))


@pytest.fixture
def fuzz(perun, fuzzed):
    def run(*options, **more):
        small = ("-N", "200", "--executions", "150", "--seed", "1", "--no-minimize", "-np", "-l", "1")
        return perun("fuzz", "-b", fuzzed, "-w", "seeds", "-o", "out", *small, *options, **more)

    return run


def test_a_folder_of_results(fuzz, project):
    done = fuzz()
    out = project.path / "out"
    found = results.load(out)
    slow = found.of_kind("slow")
    assert slow
    assert found.executions == 150
    assert slow[0].ratio > 2
    assert found.seeds[0].name == "seeds/words.txt"
    assert found.program.version == project.head
    for one in found.results:
        assert (out / one.file).stat().st_size == one.size <= 200
        assert one.file.startswith({"slow": "words-", "fault": "faults/words-", "hang": "hangs/"}[one.kind])
        assert (out / one.diff).is_file()
    assert f"results: {out}" in done.out
    assert slow[0].file in done.out
    assert "fuzzing from 1 seed" in done.err
    assert project.git("status", "--porcelain") == "?? out/\n?? seeds/"
    assert not list((project.path / ".perun" / "tmp").iterdir())


@pytest.mark.slow
def test_the_answer_says_how_the_cost_grows_and_how_small_the_input_can_be(perun, fuzzed, project):
    done = perun("fuzz", "-b", fuzzed, "-w", "seeds", "-o", "out", "-N", "200", "--executions", "150",
                 "--seed", "1", "-np", "-l", "1", "-t", "60")  # fmt: skip
    best = results.load(project.path / "out").of_kind("slow")[0]
    size = (project.path / "out" / best.minimized).stat().st_size
    lines = done.out.splitlines()
    said = lines[next(number for number, line in enumerate(lines) if best.file in line) + 1]
    assert said.startswith("    quadratic in the number of spaces: exponent ")
    assert said.endswith(f"; smallest form {size} B")


def test_the_same_seed_finds_the_same_with_any_number_of_processes(fuzz, project):
    def files():
        found = json.loads((project.path / "out" / "logs" / "campaign.jsonl").read_text().splitlines()[-1])
        lines = (project.path / "out" / "logs" / "campaign.jsonl").read_text().splitlines()
        members = [json.loads(line) for line in lines]
        return found["executions"], [one["member"]["name"] for one in members if one["kind"] == "member"]

    fuzz("--jobs", "1")
    first = files()
    shutil.rmtree(project.path / "out")
    fuzz("--jobs", "2")
    assert files() == first
    assert len(first[1]) > 10


def test_a_terminal_shows_a_panel(terminal, fuzzed, project):
    shown = terminal("fuzz", "-b", fuzzed, "-w", "seeds", "-o", "out", "-N", "200", "--executions", "150",
                     "--seed", "1", "--no-minimize", "-np", "-l", "1")  # fmt: skip
    for name in ("executions", "corpus", "best ratio", "coverage", "hangs", "faults", "best rules", "left"):
        assert name in shown.out, name


def test_json_is_what_the_folder_holds(fuzz, project):
    answer = fuzz("--json").json
    assert answer.pop("schema") == "perun.fuzz/1"
    stored = json.loads((project.path / "out" / "results.json").read_text())
    assert {key: answer[key] for key in stored} == stored
    assert answer["folder"] == str(project.path / "out")
    assert answer["interrupted"] is False


def test_resume_goes_on(fuzz, perun, project):
    fuzz()
    before = results.load(project.path / "out")
    perun("fuzz", "--resume", "-o", "out", "--executions", "200", "--no-minimize")
    after = results.load(project.path / "out")
    assert after.executions == 200
    assert after.random_seed == before.random_seed
    assert after.coverage.points[: len(before.coverage.points)] == before.coverage.points
    failed = perun("fuzz", "--resume", "-o", "out", "-b", "./other", check=False)
    assert failed.code == 2
    assert "--resume goes on with the options that it began with, not with --cmd" in failed.err
    assert "holds no campaign to resume" in perun("fuzz", "--resume", "-o", "none", check=False).err


MOMENTS = {
    "the seeds are tried": lambda out, journal: '"kind":"campaign"' in journal,
    "it searches": lambda out, journal: '"interesting":true' in journal and journal.count("\n") > 8,
    "it measures": lambda out, journal: '"kind":"confirmed"' in journal,
    "it minimises": lambda out, journal: (out / "results.json").exists(),
}


@pytest.mark.parametrize(("number", "moment"), [
    (signal.SIGINT, "it searches"),
    *(pytest.param(signal.SIGKILL, moment, marks=pytest.mark.slow) for moment in MOMENTS),
])  # fmt: skip
def test_what_ends_a_campaign_loses_nothing(command, environment, fuzzed, perun, project, number, moment):
    """Ctrl-C ends with a folder of results; after a kill it is made by --resume."""
    out = project.path / "out"
    seconds = "9" if moment in ("it measures", "it minimises") else "600"
    options = ["-b", fuzzed, "-w", "seeds", "-o", str(out), "-N", "200", "-np", "-t", seconds, "--jobs", "2"]
    process = subprocess.Popen(
        [*command, "fuzz", *options], env=environment, cwd=project.path,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    journal = out / "logs" / "campaign.jsonl"
    deadline = time.monotonic() + 300
    while not (journal.exists() and MOMENTS[moment](out, journal.read_text())):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(number)
    _, errors = process.communicate(timeout=300)
    found_by_then = journal.read_text().count('"kind":"member"')
    if number == signal.SIGKILL:
        perun("fuzz", "--resume", "-o", "out", "-t", "1", "--no-minimize")
    else:
        assert process.returncode == 130, errors
        assert "these are the results so far" in errors
        assert "Traceback" not in errors
    found = results.load(out)
    assert found.results
    assert found.corpus > min(found_by_then, 5)
    assert all((out / one.file).is_file() and (out / one.diff).is_file() for one in found.results)
    assert not list((project.path / ".perun" / "tmp").iterdir())


RECORDING = """\
#!/bin/sh
wc -c <"$1" >>"$RECORD"
[ "$(wc -c <"$1")" -eq 15 ] || sleep "$PAUSE"
"""
"""A program that is slow on all that has not the size of the seed, and writes down what it reads."""


@pytest.fixture
def recorded(perun, project, fuzzed, tmp_path):
    """Fuzz a program that records its runs, without coverage: the sizes of what it read, and the answer.

    A sleep of 1.5 s is many times as long as the start of a shell, however loaded the machine is. A shorter
    one will do where the median of many pairs is judged.
    """
    project.write({"slow": RECORDING})
    (project.path / "slow").chmod(0o755)
    record = tmp_path / "record"

    def run(*options, pause=1.5):
        done = perun("fuzz", "-b", "./slow", "-w", "seeds", "-o", "out", "-N", "60", "--seed", "5", "-np",
                     "--skip-coverage-testing", "--no-minimize", "--executions", "1", "--json", *options,
                     env={"RECORD": str(record), "PAUSE": str(pause)})  # fmt: skip
        return [int(line) for line in record.read_text().split()], done.json

    return run


def test_results_are_measured_beside_their_seed(recorded):
    sizes, answer = recorded(pause=0.6)
    slow = [one for one in answer["results"] if one["size"] != 15]
    assert slow
    for one in slow:
        said = one["confirmation"]
        # Whether it is severe depends on how long Python takes to start, beside the pause.
        assert said["change"] in ("Degradation", "SevereDegradation")
        assert said["method"] == "hodges_lehmann_ratio"
        assert said["pairs"] == 10
        assert said["target"] > 0.6
        assert said["target"] > said["baseline"] > 0
        assert said["low"] < said["ratio"] < said["high"]
        assert one["score"] > 1
    pairs = list(zip(sizes[::2], sizes[1::2], strict=True))
    assert all(15 in pair for pair in pairs)  # each run of what was found has one of the seed beside it
    orders = {pair.index(15) for pair in pairs if pair != (15, 15)}
    assert orders == {0, 1}  # in random order


def test_what_was_found_by_coverage_is_measured(perun, project, fuzzed):
    """20 KB of spaces take a fifth of a second, 100 B a millisecond."""
    (project.path / "seeds" / "words.txt").write_text("one two  three\n" + " " * 100)
    options = ("-N", "20000", "-l", "2", "--executions", "250", "--seed", "3", "--no-minimize", "-np")
    answer = perun("fuzz", "-b", fuzzed, "-w", "seeds", "-o", "out", *options, "--json").json
    measured = [one["confirmation"] for one in answer["results"] if one["confirmation"]]
    slow = [one for one in measured if one["rate"]]
    assert slow
    assert all(one["change"].endswith("Degradation") and one["ratio"] > 1 for one in slow)
    assert all(one["method"] == "hodges_lehmann_ratio" for one in slow if one["pairs"] == 10)
    best = max(slow, key=lambda one: one["ratio"])
    assert best["target"] > 2 * best["baseline"] > 0


BAD = {
    "no seed": (("-w", "none"), 2, "--input-sample none does not exist"),
    "a filter that fits nothing": (("-w", "seeds", "-wf", "[.]xml$"), 2, "'[.]xml$' fits none of 1 file"),
    "a bad filter": (("-w", "seeds", "-wf", "("), 2, "--workloads-filter '(' is no regular expression"),
    "no command": (("-w", "seeds", "-b", ""), 2, "--cmd (-b) is missing"),
    "no program": (("-w", "seeds", "-b", "./nothing"), 8, "nothing"),
    "two sizes": (("-w", "seeds", "-N", "9", "-mp", "2"), 2, "--max-size and --max-size-ratio"),
    "a size of nothing": (("-w", "seeds", "-N", "0"), 2, "'--max-size'"),
    "a rate below one": (("-w", "seeds", "-cr", "0.5"), 2, "'--coverage-increase-rate'"),
    "a time that is none": (("-w", "seeds", "-t", "nan"), 2, "nan is no number"),
    "an unknown strategy": (("-w", "seeds", "-mpr", "often"), 2, "'--mutations-per-rule'"),
    "an unknown collector": (("-w", "seeds", "-c", "weather"), 9, "weather"),
    "an unknown method": (("-w", "seeds", "--check", "guess"), 9, "guess"),
    "too many parameters": (("-w", "seeds", "-pp", "a=1"), 2, "more --postprocessor-params"),
    "bad rules": (("-w", "seeds", "-r", "rules.yml"), 2, "rules.yml"),
    "an unknown version": (("-w", "seeds", "-m", "nowhere"), 4, "nowhere"),
    "a build without flags": (("-w", "seeds", "--build", "make {colour}"), 8, "make {colour}"),
}


@pytest.mark.parametrize(("options", "code", "says"), BAD.values(), ids=BAD)
def test_bad_input_is_named_before_anything_is_searched(perun, project, fuzzed, options, code, says):
    (project.path / "rules.yml").write_text("'(unclosed': x\n")
    failed = perun("fuzz", "-b", fuzzed, "-o", "out", *options, code=code, err=says)
    assert "hint: " in failed.err
    assert not (project.path / "out").exists()
    assert not list((project.path / ".perun" / "tmp").glob("*"))


def test_an_empty_seed(perun, project, fuzzed):
    (project.path / "seeds" / "words.txt").write_text("")
    perun(
        "fuzz", "-b", fuzzed, "-o", "out", "-w", "seeds", code=2, err="no seed: seeds/words.txt: it is empty"
    )


def test_a_program_without_counters(perun, project, fuzzed, compiled):
    failed = perun("fuzz", "-b", str(compiled("-DPLAIN")), "-o", "out", "-w", "seeds", check=False)
    assert failed.code == 2 or failed.code == 8
    assert "--coverage" in failed.err
    assert not (project.path / "out").exists()


def test_a_program_that_always_fails(perun, project, fuzzed):
    (project.path / "seeds" / "words.txt").write_text("   \n\n")
    failed = perun("fuzz", "-b", fuzzed, "-o", "out", "-w", "seeds", check=False)
    assert failed.code == 8
    assert "no seed can be used: the program was killed by SIGABRT (Aborted) on seeds/words.txt" in failed.err
    assert not (project.path / "out").exists()


def test_a_folder_that_is_not_empty(fuzz, project):
    (project.path / "out").mkdir()
    (project.path / "out" / "mine").touch()
    failed = fuzz(check=False)
    assert failed.code == 2
    assert "is not empty" in failed.err
    assert [one.name for one in (project.path / "out").iterdir()] == ["mine"]


def test_a_folder_that_cannot_be_made(perun, project, fuzzed):
    failed = perun("fuzz", "-b", fuzzed, "-w", "seeds", "-o", "/proc/results", check=False)
    assert failed.code == 2
    assert "--output-dir /proc/results cannot be made there" in failed.err


def test_a_disk_without_room(command, environment, fuzzed, project):
    """A limit of the size of files refuses as a full disk does."""
    limited = ["sh", "-c", 'ulimit -f 1000; exec "$@"', "sh", *command, "fuzz"]
    done = subprocess.run(
        [*limited, "-b", fuzzed, "-w", "seeds", "-o", "out"], env=environment, cwd=project.path,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 3
    assert f"cannot read or write {project.path / 'out'}: File too large" in done.stderr
    assert not (project.path / "out").exists()


def test_a_seed_larger_than_the_limit_is_told(fuzz):
    done = fuzz("-N", "5")
    assert "--max-size 5 is less than the 15 bytes of the seed seeds/words.txt: mutations have" in done.err


def test_a_repository_of_a_stranger(perun, project, fuzzed):
    perun("config", "set", "execute.pre_run", "touch ran")
    perun("trust", "--revoke", check=False)
    shutil.rmtree(Path(os.environ["PERUN_CONFIG_DIR"]), ignore_errors=True)
    perun("fuzz", "-b", fuzzed, "-o", "out", "-w", "seeds", code=11)
    assert not (project.path / "ran").exists()
    assert not (project.path / "out").exists()


def test_build_makes_its_own_copy(perun, project, fuzzed):
    project.commit("sources", {"prog.c": SOURCE, "Makefile": "prog: prog.c\n\t$(CC) $(CFLAGS) -o $@ $<\n"})
    perun("fuzz", "-b", "./prog", "-w", "seeds", "-o", "out", "--build", "make CC={cc} CFLAGS='{flags}'",
    "-l", "1",
          "-N", "200", "--executions", "100", "--seed", "1", "--no-minimize", "-np")  # fmt: skip
    assert results.load(project.path / "out").of_kind("slow")
    assert not (project.path / "prog").exists()
    assert not list((project.path / ".perun" / "tmp").glob("*"))


def test_another_collector_and_method(recorded):
    sizes, answer = recorded("-c", "time", "-cp", "repeat=2", "-cp", "warmup=0",
                             "--check", "average_amount_threshold")  # fmt: skip
    slow = [one["confirmation"] for one in answer["results"]]
    assert slow
    assert {one["method"] for one in slow} == {"average_amount_threshold"}
    assert {one["change"] for one in slow} == {"Degradation"}
    assert {one["metric"] for one in slow} == {"./slow [real]"}
    # A profile of two runs of each: of the seed once, in the beginning.
    assert sizes[:2] == [15, 15]
    assert len(sizes) == 2 * (1 + 1)


def test_profiles_are_postprocessed_before_they_are_judged(recorded):
    """The normalizer divides by the largest amount, the time that passed: that is alike in all profiles."""
    options = ("-c", "time", "-cp", "repeat=1", "-cp", "warmup=0", "-p", "normalizer",
               "--check", "average_amount_threshold")  # fmt: skip
    slow = [one["confirmation"]["metric"] for one in recorded(*options)[1]["results"]]
    assert "./slow [real]" not in slow
