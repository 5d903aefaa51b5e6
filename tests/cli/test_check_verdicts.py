"""`perun check` in a new repository: intervals, what takes their place, and what is not comparable."""

import itertools
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perun.profile import session
from perun.profile.factory import Profile, load_profile, store_profile
from perun.store.changes import parse
from profiles import profile_of

KERNEL = {"machine": {"release": "6.1.0", "build": "CFLAGS=-O2"}}


def timed(path: Path, factor: float, side: str = "", sigma: float = 0.01, **regions: Any) -> str:
    """A profile of 20 runs of a program; those with a side belong together pair by pair."""
    seed = {"": 1, "base": 2, "head": 3}[side]
    noise = np.random.default_rng(seed).lognormal(0, sigma, 20)
    resources = [
        {"uid": "./prog", "subtype": subtype, "order": order, "amount": share * value}
        for order, value in enumerate((factor * noise).tolist(), 1)
        for subtype, share in (("real", 1.0), ("user", 0.7), ("sys", 0.1))
    ]
    profile = profile_of([*resources, {"uid": "setup", "amount": 3.0 * factor}], cmd="./prog", **regions)
    if side:
        session.mark(profile, session.Session("s", side, runs_are_rounds=True))  # type: ignore[arg-type]
    store_profile(profile, path)
    return str(path)


def results(outcome: Any) -> dict[str, tuple[str, str]]:
    """The method and the result by location."""
    changes = outcome.json["comparisons"][0]["changes"]
    found = {change["location"]: (change["method"], change["result"]) for change in changes}
    assert len(found) == len(changes), "each place is told once"
    return found


@pytest.fixture
def check(project: Any, perun: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    def run(factor: float, *options: str, sides: bool = True, sigma: float = 0.01, **regions: Any) -> Any:
        old = timed(tmp_path / "old.perf", 1.0, "base" if sides else "", sigma, **({} if sides else KERNEL))
        new = timed(tmp_path / "new.perf", factor, "head" if sides else "", sigma, **regions)
        return perun("check", "--json", *options, "profiles", old, new, check=False)

    return run


def test_a_new_repository_answers_with_intervals(perun, check) -> None:
    outcome = check(2.2, "--fail-on", "severe")
    assert outcome.code == 1
    clocks = dict.fromkeys(
        ("./prog [cpu]", "./prog [real]", "./prog [sys]", "./prog [user]"),
        ("hodges_lehmann_ratio", "SevereDegradation"),
    )
    # What was measured once has no noise that is known; the other method takes its place.
    assert results(outcome) == clocks | {"setup": ("average_amount_threshold", "Degradation")}
    perun("config", "--local", "set", "degradation.apply", "first")
    assert results(check(2.2)) == results(outcome), "what takes the place of the first rule belongs to it"
    change = outcome.json["comparisons"][0]["changes"][0]
    assert 2.1 < change["interval"][0] < 2.2 < change["interval"][1] < 2.3
    assert change["sizes"] == [20, 20]
    assert 1 < change["detectable"] < 1.05
    assert change["p_value"] < 0.01
    assert "lies above 1.25" in change["rule"]


def test_inconclusive_has_an_exit_code_of_its_own(check: Callable[..., Any]) -> None:
    undecided = check(1.0, "--fail-on", "inconclusive", sigma=0.06)
    assert results(undecided) == dict.fromkeys(
        ("./prog [cpu]", "./prog [real]"), ("hodges_lehmann_ratio", "Unknown")
    ), "nothing can be said of user and sys either, which cpu tells"
    assert undecided.code == 12
    assert check(1.0, "--fail-on", "degradation", sigma=0.06).code == 0
    assert check(1.0, "--fail-on", "inconclusive").code == 0
    assert check(1.2, "--fail-on", "inconclusive").code == 1


def test_unlike_conditions_are_named_and_can_be_forced(check: Callable[..., Any]) -> None:
    other = {"machine": {"release": "6.8.0", "build": "CFLAGS=-O0"}}
    outcome = check(3.0, "--fail-on", "inconclusive", sides=False, **other)
    assert outcome.code == 12
    assert results(outcome) == {"./prog": ("hodges_lehmann_ratio", "Unknown")}
    told = "kernel: 6.1.0 and 6.8.0; build: CFLAGS=-O2 and CFLAGS=-O0"
    assert outcome.json["comparisons"][0]["environment"] == told
    forced = check(3.0, "--fail-on", "inconclusive", "--force", sides=False, **other)
    assert forced.code == 1
    assert forced.json["comparisons"][0]["environment"] == told
    assert "--force" in outcome.json["comparisons"][0]["changes"][0]["rule"]


def test_of_several_profiles_that_of_the_same_session_is_the_baseline(project, perun, tmp_path) -> None:
    for revision, side, session_id in (
        ("HEAD~1", "base", "first"), ("HEAD", "head", "first"), ("HEAD~1", "base", "second")
    ):  # fmt: skip
        profile = load_profile(timed(tmp_path / "made.perf", 1.1 if side == "head" else 1.0, side))
        session.mark(profile, session.Session(session_id, side, runs_are_rounds=True))  # type: ignore[arg-type]
        file = tmp_path / f"{side}-{session_id}.perf"
        store_profile(profile, file)
        perun("add", "-m", revision, "--force", str(file))
    outcome = perun("check", "head", "--json")
    (compared,) = outcome.json["comparisons"]
    assert compared["baseline_profile"] == "base-first.perf"
    # Samples measured apart would be a Maybe.
    assert results(outcome)["./prog [cpu]"] == ("hodges_lehmann_ratio", "Degradation")


def test_what_is_stored_of_a_change_is_what_older_releases_read(project, perun, tmp_path) -> None:
    for revision, factor, side in (("HEAD~1", 1.0, "base"), ("HEAD", 2.5, "head")):
        file = timed(tmp_path / f"{side}.perf", factor, side)
        perun("add", "-m", revision, "--force", "--keep-profile", file)
    text = perun("check", "head", "--format", "manual").out
    assert "why: the 99 % interval of the ratio" in text
    head = project.git("rev-parse", "HEAD")
    stored = project.path / ".perun" / "objects" / head[:2] / f"{head[2:]}.changes"
    lines = stored.read_text().splitlines()
    # Nine fields, the version of the baseline, and the collector with the command.
    assert all(len(line.split(" ")) == 12 for line in lines)
    assert {one.info.location for one in parse(stored.read_bytes(), "file")} == {
        "./prog [cpu]", "./prog [real]", "./prog [sys]", "./prog [user]", "setup"
    }  # fmt: skip


REAL = (0.3636, 0.3955, 0.4441, 0.4715, 0.4063, 0.3731, 0.4561, 0.4542, 0.3735, 0.4376)
USER = (0.2201, 0.2225, 0.2279, 0.2259, 0.2250, 0.2330, 0.2346, 0.2318, 0.2246, 0.2249)
USER_LATER = (0.2192, 0.2212, 0.2215, 0.2148, 0.2173, 0.2225, 0.2194, 0.2229, 0.2240, 0.2233)
"""Seconds of ten runs of one program each, recorded on a busy machine: a loop, waiting for the processor."""


_NUMBERS = itertools.count()


def recorded(
    perun: Callable[..., Any], folder: Path, revision: str, real: float, user: float, workload: str = ""
) -> None:
    """Register the recorded runs in the version, so many times as slow; later runs of it are others."""
    later = revision == "HEAD"
    header = {"type": "time", "cmd": "./prog", "args": "", "workload": workload, "units": {"time": "s"}}
    profile = Profile({"header": header, "collector_info": {"name": "time", "params": {}}, **KERNEL})
    clocks = {
        "real": [real * value for value in (reversed(REAL) if later else REAL)],
        "user": [user * value for value in (USER_LATER if later else USER)],
        "sys": [0.0] * 9 + [0.004],
    }
    profile.update_resources(
        {"uid": "./prog", "type": "time", "subtype": clock, "order": order, "amount": value}
        for clock, values in clocks.items()
        for order, value in enumerate(values, 1)
    )
    # Two profiles of one name and second cannot be registered side by side.
    file = folder / f"{next(_NUMBERS)}{workload}.perf"
    store_profile(profile, file)
    perun("add", "-m", revision, "--force", str(file))


@pytest.fixture
def slower(project: Any, perun: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    """The check of a repository as `perun init` makes it: HEAD is so many times as slow as its parent."""

    def check(real: float, user: float, *options: str) -> Any:
        for revision, times in (("HEAD~1", (1.0, 1.0)), ("HEAD", (real, user))):
            recorded(perun, tmp_path, revision, *times)
        return perun("check", "head", *options, check=False)

    return check


def test_twice_as_slow_on_all_clocks_is_reported(slower: Callable[..., Any]) -> None:
    outcome = slower(2.4, 2.4, "--json", "--fail-on", "maybe")
    assert outcome.code == 1
    found = {one["location"]: one for one in outcome.json["comparisons"][0]["changes"]}
    for clock in ("real", "user", "cpu"):
        change = found[f"./prog [{clock}]"]
        assert change["method"] == "hodges_lehmann_ratio"
        assert "Degradation" in change["result"]
        assert change["from_value"]["unit"] == change["to_value"]["unit"] == "s"
        assert change["percent"] == pytest.approx(140, abs=20)
        low, high = change["percent_interval"]
        assert 2 < low < change["percent"] < high, "the interval has what the machine may make of it"
        assert change["sizes"] == [10, 10]


def test_waiting_alone_is_reported_of_real_time_only(slower, perun) -> None:
    outcome = slower(2.9, 1.0, "--fail-on", "degradation")
    assert outcome.code == 1
    (line,) = [line for line in outcome.lines if "Degradation" in line]
    told = "| Severe Degradation, unconfirmed real 0.422 s -> 1.22 s +190 % ["
    assert " ".join(line.split()).startswith(told)
    # Status has the same numbers as the check, and a line for each of them.
    tally = next(line for line in outcome.lines if "compared: " in line).partition(": ")[2]
    status = perun("status").lines
    (counts,) = [line for line in status if re.match(r"\d+ changes: ", line)]
    numbers = re.findall(r"\d+ \w+", counts.partition(": ")[2])
    # A severe degradation is one, too.
    assert sorted(numbers) == sorted(one for one in re.findall(r"\d+ \w+", tally) if "severe" not in one)
    assert len(status) - status.index(counts) - 1 == int(counts.partition(" ")[0])
    assert " ".join(status[status.index(counts) + 1].split()) == (
        "Severe Degradation, unconfirmed ./prog [real] 0.422 s -> 1.22 s +190 % 2.9x"
    )


def test_workloads_are_told_apart_and_repeated_profiles_pooled(project, perun, tmp_path) -> None:
    for workload, factor in (("small", 1.0), ("big", 2.9)):
        for revision, times in (("HEAD~1", 1.0), ("HEAD", factor), ("HEAD", factor)):
            recorded(perun, tmp_path, revision, times, times, workload)
    lines = perun("check", "head").lines
    headings = [line for line in lines if line.startswith("| ./prog")]
    assert headings[0].startswith("| ./prog big (time), against ")
    assert len(headings) <= 2
    reals = [line for line in lines if re.search(" real  ", line)]
    assert len([line for line in reals if "Degradation" in line]) == 1
    assert "n = 10, 20" in reals[0]
    assert "|   note: pooled profiles: 1 of the baseline, 2 of the target" in lines


@pytest.mark.slow  # test_precollect.py and the examples for CI in test_check_formats.py show it as well
def test_a_program_that_computes_much_more_is_found(project, perun, tmp_path) -> None:
    """Measured for real: so much slower that no load of the machine hides it."""
    source = tmp_path / "spin.c"
    source.write_text(
        "#include <stdlib.h>\n"
        "int main(int argc, char **argv) {\n"
        "    volatile unsigned long sum = 0;\n"
        "    for (long i = 0; i < atol(argv[1]) * 1000000; i++) sum += i;\n"
        "    return argc != 2;\n"
        "}\n"
    )
    subprocess.run(["cc", "-O1", "-o", tmp_path / "spin", source], check=True)
    (project.path / ".perun/local.yml").write_text(
        "vcs: {type: git, url: ..}\ncmds: [sh run.sh]\n"
        "collectors: [{name: time, params: {warmup: 0, repeat: 6}}]\n"
        "degradation: {strategies: [{method: hodges_lehmann_ratio}]}\n"
    )
    for times in (2, 24):
        project.commit(f"Loop {times} times", {"run.sh": f"exec {tmp_path / 'spin'} {times}\n"})
    outcome = perun("check", "-c", "head", "--fail-on", "degradation", "--json", code=1)
    found = {one["location"]: one["result"] for one in outcome.json["comparisons"][0]["changes"]}
    assert found["sh run.sh [cpu]"] in ("Degradation", "SevereDegradation")


def allocating(perun: Callable[..., Any], folder: Path, revision: str, amount: int) -> None:
    """Register a memory profile of the version: `build`, called by `main`, allocated so many bytes."""
    header = {"type": "memory", "cmd": "./prog", "args": "-n 1", "workload": "", "units": {"memory": "B"}}
    profile = Profile({"header": header, "collector_info": {"name": "memory", "params": {}}, **KERNEL})
    trace = [
        {"function": name, "source": "prog.c", "line": line} for name, line in (("build", 3), ("main", 9))
    ]
    profile.update_resources(
        {"uid": trace[0], "type": "memory", "subtype": "malloc", "address": order, "amount": amount,
         "order": order, "trace": trace}
        for order in range(1, 4)
    )  # fmt: skip
    file = folder / f"memory-{revision[-1]}.perf"
    store_profile(profile, file)
    perun("add", "-m", revision, "--force", str(file))


def test_the_last_line_can_be_typed(project: Any, perun: Callable[..., Any], tmp_path: Path) -> None:
    for revision, amount in (("HEAD~1", 1 << 20), ("HEAD", 3 << 20)):
        allocating(perun, tmp_path, revision, amount)
    outcome = perun("check", "head")
    assert "  prog.c:build:3 [allocated]  3 MiB -> 9 MiB  +200 %  3x  n = 1" in outcome.lines[2]
    label, _, command = outcome.lines[-1].partition(": ")
    assert label == "why"
    program, *words = shlex.split(command)
    assert program == "perun"
    shown = perun(*words)
    page = project.path / shown.lines[-1]
    assert "build" in page.read_text("utf-8")
    # Two profiles as they were named, of another version too.
    for named in (("HEAD~1:0@i", "HEAD:0@i"), ("-m", "HEAD", "HEAD~1:0@i", "0@i")):
        told = perun("check", "profiles", *named).lines[-1]
        assert told == "why: perun show HEAD:0@i flamegraph --diff HEAD~1:0@i"
    perun(*shlex.split(told)[2:])


def test_two_sessions_on_a_machine_that_became_slower(perun, project, tmp_path) -> None:
    def told(before: float, after: float) -> tuple[str, str]:
        paths = []
        for name, factor, speed in (("old", 1.0, before), ("new", 1.3, after)):
            times = [round(speed * 1e6)] * 12
            machine = {"speed": {"loop": 1, "processor": times, "wall": times}} if speed else {}
            paths.append(timed(tmp_path / f"{name}.perf", factor, machine=machine))
        outcome = perun("check", "--json", "profiles", *paths)
        found = {one["location"]: one for one in outcome.json["comparisons"][0]["changes"]}["./prog [real]"]
        return found["result"], found["rule"]

    perun("config", "set", "degradation.hodges_lehmann_ratio.apart", "0.1")
    plain = told(0.0, 0.0)
    assert plain[0] == "Degradation" and "machine was" not in plain[1]
    assert told(20.0, 0.0) == told(20.0, 20.1) == plain
    slower, reason = told(20.0, 25.0)
    assert slower == "Unknown" and "the machine was 25 % slower for the target" in reason
