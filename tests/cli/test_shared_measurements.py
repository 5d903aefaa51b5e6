"""`perun run matrix`: versions whose program and input are those of a neighbour share its measurement."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from perun.repository.repository import open_repository
from perun.running.run.schedule import ROUNDS
from shared import wait_for

SOURCE = """#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) {
  FILE *in = fopen("input", "r"), *record = fopen(getenv("RECORD"), "a");
  int number = 0;
  if (!in || fscanf(in, "%d", &number) != 1 || number < 0) return 1;
  if (record) fprintf(record, "ran-%d\\n", number);
  usleep(2000);
}
"""
MATRIX = """cmds: [./prog]
collectors: [{name: time, params: {warmup: 0, repeat: 5}}]
execute: {pre_run: [cc -O1 -o prog prog.c], budget: 0}
profiles: {register_after_run: true}
degradation: {strategies: [{method: hodges_lehmann_ratio}]}
"""


@pytest.fixture
def versions(project: Any, configure: Any) -> list[str]:
    """The checksums of five: the first, others with another README, comment and input, and a README again."""
    configure(MATRIX)
    files = {".gitignore": "prog\n.perun\n", "prog.c": SOURCE, "input": "4\n", "README": "One.\n"}
    found = []
    for subject, changed in (
        ("Begin", files),
        ("Tell more", {"README": "Two.\n"}),
        ("Comment", {"prog.c": f"/* Counts. */\n{SOURCE}"}),
        ("Count more", {"input": "5\n"}),
        ("Tell less", {"README": "Six.\n"}),
    ):
        project.commit(subject, changed)
        found.append(project.git("rev-parse", "HEAD"))
    return found


def profiles(project: Any, version: str) -> list[dict[str, Any]]:
    """Those of the version, by rounds."""
    repo = open_repository(project.path, {})
    entries = repo.store.indexes.read(version)
    found = [json.loads(repo.store.objects.get_body(one.checksum)) for one in entries]
    return sorted(found, key=lambda one: int(one["header"]["session"]["round"]))


def sources(project: Any, version: str) -> list[str]:
    """Of each round whose measurement the version has."""
    sessions = [one["header"]["session"] for one in profiles(project, version)]
    return [one.get("shares", {}).get("minor_version", version) for one in sessions]


def ran(record: Path) -> dict[str, int]:
    """How often the program ran, by its input."""
    words = record.read_text().split()
    return {word: words.count(word) for word in set(words)}


def test_what_is_the_same_is_measured_once(perun: Any, project: Any, versions: Any, record: Path) -> None:
    told = perun("run", "matrix", "--since", "HEAD~5", "--quiet-env")
    first, *_, fourth, last = versions
    assert [sources(project, one) for one in versions] == [
        [one] * ROUNDS for one in (first, first, first, fourth, fourth)
    ]
    # Of pairs of which some file differs one run of each side was looked at, until one opens it.
    for word, version, looks in (("ran-4", first, 5), ("ran-5", fourth, 2)):
        measured = [one["collector_info"]["params"]["repeat"] for one in profiles(project, version)]
        assert ran(record)[word] == sum(measured) + looks
    for version, before in zip(versions[1:], (first, first, None, fourth), strict=True):
        known = f"{version[:10]} shares the measurement of {str(before)[:10]}: "
        assert (known in told.out) == (before is not None), version
    assert (
        told.out.count("the compiled program is the same on both sides, and opens no file that differs") == 3
    )
    assert told.out.count(f"No Change: the same program and input as {first[:10]}, measured once") == 2
    assert told.out.count(f"registered {ROUNDS} profiles") == len(versions)
    shared, own = (profiles(project, one)[0]["header"]["session"] for one in (last, fourth))
    assert shared["id"] == own["id"] and own["minor_version"] == fourth


def test_all_answers_say_it(perun: Any, versions: Any) -> None:
    first, _, third, fourth, _ = versions
    ran = perun("run", "matrix", "--since", "HEAD~5", "--json").json
    results = {one["minor_version"]: one for one in ran["results"]}
    logged = {one["checksum"]: one["values"][0] for one in perun("log", "--json").json["versions"][:5]}
    checked = {one["minor_version"]: one for one in perun("-v", "check", "all", "--json").json["comparisons"]}
    for version, source in zip(versions, (first, first, first, fourth, fourth), strict=True):
        own = [one for one in ran["profiles"] if one["minor_version"] == version]
        shares = None if source == version else source
        assert {one["shares"] and one["shares"]["minor_version"] for one in own} == {shares}
        assert len(own) == results[version]["rounds"] == ROUNDS
        value = logged[version]
        told = results[version]
        assert (value["measured"], value["difference"]) == (told["measured"], told["difference"])
        if shares is not None:
            reason = f"the same program and input as {source[:10]}, measured once"
            names = ("ratio", "ratio_low", "ratio_high", "verdict", "decides", "reason")
            exactly = [1.0, 1.0, 1.0, "NoChange", True, reason]
            difference = value["difference"]
            assert [difference[name] for name in names] == exactly and difference["shares"] == source
            own = [one for one in checked[version]["changes"] if one["method"] == "hodges_lehmann_ratio"]
            changes = {one["location"]: one for one in own}
            assert [changes["./prog [real]"][name] for name in names] == exactly
            assert value["measured"] == logged[source]["measured"]
    assert logged[fourth]["difference"]["shares"] is None and logged[fourth]["difference"]["since"] == third
    short = perun("log", "--short")
    assert short.out.count(" =") == 3 and "= the same program and input, measured once" in short.err
    assert f"the same program and input as {first[:10]}, measured once" in perun("-v", "check", "all").out
    dated = perun("changes", "--json").json["changes"]
    assert all((one["version"], one["since"]) == (fourth, third) for one in dated)


@pytest.mark.parametrize("options", [("--no-share",), ("--rounds", "2"), ("--in-place",)])
def test_what_is_measured_nevertheless(perun: Any, project: Any, versions: Any, options: Any) -> None:
    first = ("run", "--in-place", "matrix") if "--in-place" in options else ("run", "matrix")
    perun(*first, "--since", "HEAD~2", *(one for one in options if one != "--in-place"))
    for version in versions[-2:]:
        assert set(sources(project, version)) == {version}
        assert not any("minor_version" in one["header"]["session"] for one in profiles(project, version))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_the_rest_of_an_interrupted_batch_is_shared_too(
    perun: Any, project: Any, versions: Any, record: Path, start: Any, number: int
) -> None:
    run = start("run", "matrix", "--since", "HEAD~5", "--quiet-env")
    wait_for(lambda: record.exists() and len(record.read_text().split()) > 14)
    run.send_signal(number)
    run.communicate(timeout=120)
    before = [len(profiles(project, one)) for one in versions]
    assert 0 < sum(before) < ROUNDS * len(versions)
    record.write_text("")
    told = perun("run", "matrix", "--resume", "--json").json
    first, *_, fourth, _ = versions
    assert [sources(project, one) for one in versions] == [
        [one] * ROUNDS for one in (first, first, first, fourth, fourth)
    ]
    assert len({one["header"]["session"]["id"] for own in versions for one in profiles(project, own)}) == 1
    # Nobody looks again what the program reads.
    names = {(one["minor_version"], one["name"]) for one in told["profiles"] if one["shares"] is None}
    assert 0 < len(names) <= 2 * ROUNDS
    assert len(record.read_text().split()) <= 5 * len(names)


def test_a_version_that_fails_is_told_once_and_passed_over(
    perun: Any, project: Any, configure: Any, versions: Any
) -> None:
    project.commit("Break it", {"prog.c": "int main(void) { return }\n"})
    broken = project.git("rev-parse", "HEAD")
    project.commit("Mend it", {"prog.c": SOURCE})
    mended = project.git("rev-parse", "HEAD")
    told = perun("run", "matrix", "--since", "HEAD~3", "--quiet-env", check=False)
    assert told.code != 0 and f"skipped {broken[:10]}" in told.out
    assert "1 version skipped" in told.err
    assert sources(project, mended) == [versions[-1]] * ROUNDS and sources(project, broken) == []
    assert perun("run", "matrix", "--resume", "--quiet-env", check=False).code != 0


def test_what_is_missing_is_shared_with_what_is_measured(perun: Any, project: Any, versions: Any) -> None:
    first, second, third, *_ = versions
    perun("run", "-m", first, "matrix", "--alone")
    perun("run", "-m", third, "matrix", "--since", f"{first}~1", "--missing")
    assert sources(project, first) == [first]
    assert sources(project, second) == sources(project, third) == [second] * ROUNDS


def test_a_run_that_reads_what_differs_is_measured(perun: Any, project: Any, configure: Any) -> None:
    """What a command line does not name, the program opens: here by a script that is no program in machine
    code, of which all files must be the same."""
    configure(MATRIX.replace("./prog", "sh run.sh").replace("cc -O1 -o prog prog.c", "'true'"))
    found = []
    for text in ("One.\n", "Two.\n"):
        project.commit(text, {"run.sh": "cat input\n", "README": text, "input": "4\n"})
        found.append(project.git("rev-parse", "HEAD"))
    project.git("commit", "--allow-empty", "-q", "-m", "Nothing")
    found.append(project.git("rev-parse", "HEAD"))
    perun("run", "matrix", "--since", "HEAD~3")
    first, second, _ = found
    assert [set(sources(project, one)) for one in found] == [{first}, {second}, {second}]
