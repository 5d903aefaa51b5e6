"""`perun bench`: numbers without configuration, side by side, kept by commit."""

import csv
import itertools
import json
import math
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from perun.profile.factory import Profile
from perun.repository.repository import open_repository

LINE = r"{} +[\d.]+ [mµn]?s ± (?:[\d.]+|>100 %) \(n = {}\)"
"""What a command is answered with."""


@pytest.fixture
def stranger(perun: Any, git_repository: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A git repository with a program, of which Perun knows nothing; it is the current directory."""
    repository = git_repository()
    repository.commit("One", {"run.sh": "#!/bin/sh\necho $1 >> ../ran\n", ".gitignore": "*.log\n"})
    monkeypatch.chdir(repository.path)
    return repository


@pytest.fixture
def bench(project: Any, perun: Any) -> Any:
    """The JSON answer of `perun bench` in a repository of Perun's, three runs if nothing else is said."""

    def run(*arguments: str, check: bool = True) -> Any:
        limit = [] if "--runs" in arguments else ["--runs", "3"]
        done = perun("bench", *arguments, *limit, "--json", check=check)
        return done.json if check else done

    return run


def registered(version: str = "HEAD") -> list[Profile]:
    """The profiles of a version of the repository in the current directory."""
    repo = open_repository(Path.cwd(), os.environ)
    entries = repo.store.indexes.read(repo.version(version))
    return [repo.store.objects.get(entry.checksum) for entry in entries]


def pending() -> list[Profile]:
    store = open_repository(Path.cwd(), os.environ).store.pending
    return [store.load(info.realpath) for info in store.list()]


def reals(profile: Profile) -> list[float]:
    return [one["amount"] for _, one in profile.all_resources() if one["subtype"] == "real"]


def test_a_first_number_takes_one_command(stranger: Any, perun: Any) -> None:
    done = perun("bench", "--init", "sh run.sh 7", "--runs", "4")
    assert re.fullmatch(LINE.format("sh run\\.sh 7", 4), done.lines[0])
    assert f"registered in {stranger.head[:7]}" in done.err
    assert (stranger.path.parent / "ran").read_text() == "7\n" * 5  # warmed up once
    assert perun("log", "--json").json["versions"][0]["profiles"]["time"] == 1


def test_the_profile_is_that_of_the_collector_time(stranger: Any, perun: Any) -> None:
    perun("bench", "--init", "--save", "sh run.sh 7", "--runs", "4")
    assert perun("run", "matrix", "--missing", "--dry-run").out == "0 jobs in 0 versions\n"
    perun("run", "matrix")
    ours, theirs = sorted(registered(), key=lambda one: one["collector_info"]["params"]["repeat"])
    for key in ("cmd", "args", "workload", "type", "units"):
        assert ours["header"][key] == theirs["header"][key]
    assert ours["collector_info"].keys() == theirs["collector_info"].keys()
    assert ours["collector_info"]["params"]["repeat"] == 4
    assert ours["machine"]["build"] == theirs["machine"]["build"]
    assert all(one["machine"]["speed"]["processor"] for one in (ours, theirs))
    assert len(reals(ours)) == 4


def test_outside_of_a_perun_repository_the_error_says_what_to_do(stranger: Any, perun: Any) -> None:
    done = perun("bench", "sh run.sh", check=False)
    assert done.code == 3
    assert "is a git repository, but not a Perun repository yet" in done.err
    assert "--init" in done.err and "perun init" in done.err
    assert not (stranger.path / ".perun").exists()


def test_outside_of_any_repository(perun: Any, tmp_path: Path) -> None:
    perun("bench", "--init", "true", code=3, err="git init")


def test_on_a_terminal_it_asks(stranger: Any, terminal: Any) -> None:
    refused = terminal("bench", "sh run.sh", "--runs", "2", keys="n\n")
    assert refused.code == 3 and not (stranger.path / ".perun").exists()
    done = terminal("bench", "sh run.sh", "--runs", "2", keys="y\n")
    assert done.code == 0, done.out
    assert "Make it one?" in done.out and "(n = 2)" in done.out
    assert len(registered()) == 1


def test_what_was_measured_before_stands_beside_it(project: Any, bench: Any, perun: Any) -> None:
    first = bench("true")["benchmarks"][0]
    assert first["difference"] is None
    before = project.head
    project.commit("Another")
    answer = bench("true")
    second = answer["benchmarks"][0]
    difference = second["difference"]
    assert difference["since"] == before
    assert difference["ratio"] == pytest.approx(second["measured"]["value"] / first["measured"]["value"])
    assert difference["ratio_low"] < difference["ratio"] < difference["ratio_high"]
    assert answer["minor_version"] == project.head
    (logged,) = perun("log", "--json", "-n", "1").json["versions"][0]["values"]
    assert (logged["measured"], logged["difference"]) == (second["measured"], difference)
    assert all(isinstance(one, str) for one in answer["environment"])
    shown = perun("bench", "true", "--runs", "2")
    assert f"since {before[:7]}" in shown.lines[0]
    assert "perun compare" in shown.lines[-1]
    assert "perun compare" not in perun("bench", "false", "--runs", "2", "-i").out


def test_uncommitted_changes_are_pending(project: Any, bench: Any, perun: Any) -> None:
    command = "sh -c 'sleep 0.05; cat file.txt'"  # of which the same clock stands for both
    committed = bench(command)
    project.write({"file.txt": "changed\n"})
    found = bench(command)
    assert found["uncommitted"] and not found["benchmarks"][0]["registered"]
    # They are compared with what they change.
    before, now = (one["benchmarks"][0] for one in (committed, found))
    assert now["difference"]["since"] == project.head
    ratio = now["measured"]["value"] / before["measured"]["value"]
    assert now["difference"]["ratio"] == pytest.approx(ratio)
    assert [one["header"]["session"] for one in pending()] == [{"uncommitted": True}]
    assert len(registered()) == 1
    assert "uncommitted changes: pending, not registered" in perun("bench", "true", "-r", "2").err


def test_damage_of_the_version_costs_nothing_that_was_measured(project: Any, bench: Any) -> None:
    bench("cat file.txt")
    index = project.path / ".perun/objects" / project.head[:2] / project.head[2:]
    index.write_bytes(index.read_bytes()[:-3])
    project.write({"file.txt": "changed\n"})
    assert bench("cat file.txt")["benchmarks"][0]["difference"] is None
    assert len(pending()) == 1


def test_commands_take_turns_in_random_order(project: Any, bench: Any) -> None:
    commands = [f"sh -c 'echo {name} >> order.log'" for name in "abc"]
    bench(*commands, "--runs", "12", "--warmup", "0")
    ran = (project.path / "order.log").read_text().split()
    rounds = [tuple(ran[start : start + 3]) for start in range(0, len(ran), 3)]
    assert len(rounds) == 12
    assert all(sorted(one) == ["a", "b", "c"] for one in rounds)
    assert len(set(rounds)) > 1


def test_ratios_are_those_to_the_fastest(bench: Any, perun: Any) -> None:
    found = bench("true", "sleep 0.05", "--runs", "4")["benchmarks"]
    fastest, slower = found
    assert fastest["ratio"] is None
    rounds = [math.log(slow / fast) for slow, fast in zip(slower["times"], fastest["times"], strict=True)]
    walsh = [(a + b) / 2 for a, b in itertools.combinations_with_replacement(rounds, 2)]
    assert slower["ratio"] == pytest.approx(math.exp(statistics.median(walsh)))
    assert slower["ratio_low"] < slower["ratio"] < slower["ratio_high"]
    shown = perun("bench", "sleep 0.05", "true", "--runs", "2").out
    assert "true is the fastest" in shown
    assert re.search(r"\n  [\d.,]+x \[[^\]]+\]  sleep 0.05\n", shown)


def test_a_ratio_is_never_negative(bench: Any) -> None:
    # Of the three runs one takes far longer: the interval is wider than the ratio.
    Path("odd.sh").write_text("echo >> ../odd; [ $(wc -l < ../odd) = 2 ] && sleep 1; true\n")
    found = bench("sh odd.sh", "true", "--warmup", "0")["benchmarks"]
    (slower,) = [one for one in found if one["ratio"]]
    assert 0 < slower["ratio_low"] < slower["ratio"] < slower["ratio_high"]


def test_parameters_are_the_workloads_of_one_command(bench: Any) -> None:
    found = bench("echo {a} -n {b}", "--parameter", "a=1,2", "--parameter", "b=x,y")["benchmarks"]
    assert [one["command"] for one in found] == [f"echo {a} -n {b}" for a in "12" for b in "xy"]
    assert found[1]["parameters"] == {"a": "1", "b": "y"}
    heads = [one["header"] for one in registered()]
    assert {(one["cmd"], one["workload"]) for one in heads} == {
        ("echo", f"{a} -n {b}") for a in "12" for b in "xy"
    }
    assert {"a": "2", "b": "x"} in [one["parameters"] for one in heads]


def test_what_goes_with_each_run(project: Any, bench: Any) -> None:
    def noting(word: str) -> str:
        return f"echo {word} >> order.log"

    hooks = ["--prepare", noting("before"), "--conclude", noting("after"), "--cleanup", noting("end")]
    bench(noting("{n}"), "-P", "n=1", *hooks, "--shell", "sh", "--runs", "2", "--warmup", "1")
    assert (project.path / "order.log").read_text().split() == ["before", "1", "after"] * 3 + ["end"]
    (profile,) = registered()
    assert "before each run: sh -c 'echo before >> order.log'" in profile["machine"]["build"]


def test_times_under_other_conditions_are_told_apart(project: Any, bench: Any, perun: Any) -> None:
    bench("true", "--prepare", "true")
    project.commit("Another")
    (note,) = bench("true")["benchmarks"][0]["notes"]
    assert "measured otherwise" in note and "before each run: true" in note
    (comparison,) = perun("check", "head", "--json").json["comparisons"]
    assert "before each run: true" in comparison["environment"]


def test_what_follows_all_runs_runs_for_each_command_and_hides_no_failure(project: Any, bench: Any) -> None:
    cleanup = "echo {n} >> order.log; exit 1"
    options = ["-P", "n=1,2", "--cleanup", cleanup, "--shell", "sh", "--runs", "1", "--warmup", "0"]
    assert "--cleanup: " in bench("test {n}", *options, check=False).err
    assert (project.path / "order.log").read_text().split() == ["1", "2"]
    done = bench("exit 1{n}", *options, check=False)
    assert "exited with status 1" in done.err and "--cleanup" not in done.err
    assert (project.path / "order.log").read_text().split() == ["1", "2"] * 2


def test_what_the_job_matrix_does_not_run_is_said(project: Any, perun: Any) -> None:
    done = perun("bench", "true", "--save", "--prepare", "true", "--runs", "2")
    assert "perun run matrix does not run what --prepare" in done.err


def test_an_operator_needs_a_shell(bench: Any) -> None:
    refused = bench("echo a | cat", check=False)
    assert refused.code == 2
    assert "only a shell understands '|'" in refused.err and "--shell sh" in refused.err
    assert "--input FILE" in bench("cat < file.txt", check=False).err
    found = bench("echo a | cat", "--shell", "sh")["benchmarks"][0]
    assert (found["command"], found["cmd"]) == ("echo a | cat", "sh -c 'echo a | cat'")


def test_a_file_is_standard_input(bench: Any) -> None:
    found = bench("grep -q 3", "--input", "file.txt")["benchmarks"][0]
    assert (found["cmd"], found["workload"]) == ("grep -q 3", "< file.txt")
    assert found["exit_codes"] == [0, 0, 0]


def test_a_failing_command_is_named_with_its_last_words(bench: Any) -> None:
    done = bench("true", "sh -c 'echo oh dear >&2; exit 3'", check=False)
    assert done.code == 8
    assert "exited with status 3" in done.err and "oh dear" in done.err
    assert "--ignore-failure" in done.err
    assert registered() == [] and pending() == []
    found = bench("sh -c 'exit 3'", "-i")["benchmarks"][0]
    assert found["exit_codes"] == [3, 3, 3]
    assert "3 of 3 runs failed" in found["notes"][0]


def test_a_failing_preparation_is_named(bench: Any) -> None:
    done = bench("true", "--prepare", "false", check=False)
    assert done.code == 8
    assert "--prepare: the command 'false' exited with status 1" in done.err


def test_a_program_that_is_not_there(bench: Any) -> None:
    done = bench("./prog", "1000", check=False)
    assert done.code == 8 and "./prog" in done.err
    assert "quote each command with its arguments" in bench("true", "1000", check=False).err


def test_save_keeps_comments_and_adds_nothing_twice(project: Any, bench: Any, perun: Any) -> None:
    local = project.path / ".perun/local.yml"
    with local.open("a") as file:
        file.write("cmds:\n  # the old one\n  - 'true'  # quick\n  # end\ncollectors: [{name: memory}]\n")
    perun("trust")
    assert bench("echo 1", "--save")["saved"] == ["collectors", "profiles.register_after_run", "cmds"]
    text = local.read_text()
    assert "  # the old one\n  - 'true'  # quick\n  - echo 1\n  # end\n" in text
    assert "collectors: [{name: memory}, {name: time}]" in text
    assert bench("echo 1", "true", "--save")["saved"] == []
    assert local.read_text() == text
    perun("run", "matrix", "--dry-run")  # it is still trusted


def test_a_compiled_program_beside_a_python_package_is_built_by_make(project: Any, perun: Any) -> None:
    makefile = "all:\n\ttouch made\n"
    project.commit("Both", {"setup.py": "", "Makefile": makefile, ".gitignore": "/made\n/prog\n"})
    shutil.copy(os.path.realpath(sys.executable), project.path / "prog")
    done = perun("bench", "--save", "./prog --version", "--runs", "2")
    assert "set execute.pre_run in .perun/local.yml: make\n" in done.out + done.err
    assert (project.path / "made").exists()
    # Here it makes something else, which the hint must not deny.
    project.commit("Later", {"a": ""})
    failed = perun("run", "-m", "HEAD~1", "matrix", code=8, err="command not found: './prog'")
    assert "set execute.pre_run to what builds the program" in failed.out + failed.err


def test_save_refuses_what_the_matrix_cannot_say(project: Any, bench: Any, perun: Any) -> None:
    perun("config", "set", "cmds", "[sh a.sh]")
    perun("config", "set", "workloads", "[big.txt]")
    before = (project.path / ".perun/local.yml").read_text()
    done = bench("sh -c 'echo ran >> ran.log'", "--save", check=False)
    assert done.code == 2
    assert "it would also run" in done.err and "big.txt" in done.err
    assert not (project.path / "ran.log").exists()
    assert (project.path / ".perun/local.yml").read_text() == before
    assert bench("sh {n}", "-P", "n=a,b", "--save", check=False).code == 2


def test_a_repository_that_is_not_trusted_is_not_measured(project: Any, bench: Any, perun: Any) -> None:
    perun("config", "set", "execute.pre_run", "[touch built.log]")
    perun("trust", "--revoke")
    assert bench("true", check=False).code == 11
    perun("collect", "-c", "true", "time", code=11)
    assert not (project.path / "built.log").exists()
    perun("trust")
    bench("true")
    assert (project.path / "built.log").exists()


def test_files_in_each_format(project: Any, perun: Any) -> None:
    commands = ("bench", "echo {n}", "-P", "n=1,2", "--runs", "2", "--output")
    done = perun(*commands, "times.csv")
    assert re.match(LINE.format("echo 1", 2), done.lines[0])  # the terminal has the text
    with open("times.csv") as file:
        rows = list(csv.DictReader(file))
    assert [(row["command"], row["parameter_n"], row["n"]) for row in rows] == [
        ("echo 1", "1", "2"),
        ("echo 2", "2", "2"),
    ]
    assert float(rows[0]["min"]) <= float(rows[0]["value"]) <= float(rows[0]["max"])
    assert [bool(row["ratio"]) for row in rows].count(True) == 1
    perun(*commands, "times.md")
    assert Path("times.md").read_text().startswith("| Command | Time | Range | Ratio |\n| :--- | ---: |")
    perun(*commands, "times.json")
    assert json.loads(Path("times.json").read_text())["schema"] == "perun.bench/2"
    assert "--format" in perun(*commands, "times.txt", check=False).err
    # Before anything is measured.
    stored = len(registered())
    assert "there is no folder" in perun(*commands, "nowhere/times.csv", check=False).err
    assert len(registered()) == stored


@pytest.mark.parametrize(("arguments", "said"), [
    (["true", "--parameter", "n=1,2"], "no command holds {n}"),
    (["echo {n}", "--parameter", "n"], "not of the form NAME=a,b,c"),
    (["echo {n}", "-P", "n=1", "-P", "n=2"], "given twice"),
    (["echo {n}", "true", "-P", "n=1", "--prepare", "echo {n}"], "'true' does not"),
    ([""], "a command is empty"),
    (["echo 'a"], "close the quotes"),
    (["true", "--precision", "2"], "no share between 0 and 100 %"),
    (["true", "--budget", "0"], "is no time"),
    (["true", "--max-runs", "2"], "less than --min-runs 3"),
    (["true", "--format", "csv", "--json"], "contradict each other"),
    ([], "Missing argument"),
])  # fmt: skip
def test_wrong_usage_is_refused_before_anything_runs(project, perun, arguments, said) -> None:
    perun("bench", *arguments, code=2, err=said)
    assert registered() == []


def test_below_the_repository_it_says_where_commands_run(project: Any, perun: Any) -> None:
    (project.path / "below").mkdir()
    done = perun("bench", "cat file.txt", "-r", "2", cwd=project.path / "below")
    assert f"commands run in {project.path}" in done.err


def test_interruption_prints_what_is_known_and_stores_nothing(project, command, environment, perun) -> None:
    counted = project.path / "count.log"
    never = ["--min-runs", "100000", "--budget", "100000"]
    with subprocess.Popen(
        [*command, "bench", "sh -c 'echo x >> count.log'", *never],
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        deadline = time.monotonic() + 60
        while not counted.exists() or len(counted.read_text()) < 12:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert re.match(LINE.format("sh -c 'echo x >> count.log'", r"\d+"), out)
    assert "nothing is stored" in err
    assert registered() == [] and pending() == []
    assert list((project.path / ".perun/tmp").glob("collect-*")) == []
