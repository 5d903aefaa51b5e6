"""`perun changes`: the versions that changed the level of a series."""

import json
import shutil
import subprocess

import numpy as np
import pytest

from perun.profile.factory import Profile
from perun.store import Store
from perun.store.cache import FILE

COMMITS = 40
SLOWER, REVERTED, UNMEASURED = 15, 27, (13, 14)


def values_of(number: int, noise: np.ndarray) -> dict[str, float]:
    """What the commit of that number measured: one step that is taken back, one exact, one that moved."""
    slow = SLOWER <= number < REVERTED
    return {
        "main": (2.0 if slow else 1.0) * noise[0], "steady": noise[1],
        "sort": (0.9 if number >= 20 else 0.3) * noise[2], "merge": (0.3 if number >= 20 else 0.9) * noise[3],
        **({"old": noise[4]} if number < 30 else {})
    }  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Where the history is kept that the first test makes."""
    return tmp_path_factory.mktemp("made") / "history"


@pytest.fixture
def history(project, perun, made):
    """Forty commits with a profile of time each, but for two, and a profile of memory with one exact step."""
    if made.exists():
        for folder in (".git", ".perun"):
            shutil.rmtree(project.path / folder)
        shutil.copytree(made, project.path, symlinks=True, dirs_exist_ok=True)
        return project, project.git("rev-list", "--reverse", "main").split()
    commits = "".join(
        f"commit refs/heads/main\nmark :{number + 1}\n"
        f"committer Jane <j@example.org> {1_800_000_000 + 3600 * number} +0000\n"
        f"data <<E\nCommit number {number}\nE\nM 100644 inline f\ndata <<E\n{number}\nE\n\n"
        for number in range(COMMITS)
    )
    importing = ["git", "fast-import", "--quiet", "--force"]
    subprocess.run(importing, cwd=project.path, input=commits, text=True, check=True)
    project.git("checkout", "--quiet", "--force", "main")
    checksums = project.git("rev-list", "--reverse", "main").split()
    noise = np.exp(np.random.default_rng(1).normal(0, 0.01, (COMMITS, 5)))
    noise[35, 1] = 4.0  # a spike
    names = []
    for number, checksum in enumerate(checksums):
        if number in UNMEASURED:
            continue
        rows = [
            {"uid": uid, "amount": amount, "type": "mixed", "subtype": "exclusive"}
            for uid, amount in values_of(number, noise[number]).items()
        ]
        names.append(write(project, f"t{number}.perf", checksum, "mixed", rows))
        peak = 2000 if number >= 33 else 1000
        rows = [{"uid": "main", "amount": peak, "type": "memory", "subtype": "peak"}]
        names.append(write(project, f"m{number}.perf", checksum, "memory", rows))
    perun("add", "--to-origin", *names)
    shutil.copytree(project.path, made, symlinks=True)
    return project, checksums


def write(project, name, origin, kind, rows):
    units = {"mixed": "ms", "memory": "B"}
    header = {"type": kind, "cmd": "./app", "args": "", "workload": "", "units": units}
    collector = {"name": kind, "params": {}}
    profile = Profile({"origin": origin, "header": header, "collector_info": collector})
    profile.update_resources(rows)
    text = json.dumps(profile.serialize())
    (project.path / ".perun" / "jobs" / name).write_text(text)
    return name


def steps_of(answer):
    """Version, location and ratio, rounded, of each definite step."""
    return {
        (change["version"], step["location"].split(" ")[0]): round(step["ratio"], 1)
        for change in answer["changes"]
        for step in change["steps"]
        if step["decides"]
    }


def test_each_change_is_told_with_its_version(perun, history):
    project, checksums = history
    answer = perun("changes", "--json").json
    assert steps_of(answer) == {
        (checksums[SLOWER], "main"): 2.0,
        (checksums[REVERTED], "main"): 0.5,
        (checksums[20], "sort"): 3.0,
        (checksums[20], "merge"): 0.3,
        (checksums[33], "main"): 2.0,
        (checksums[35], "steady"): 4.0,  # of one version, and back
        (checksums[36], "steady"): 0.3,
    }
    by_version = {change["version"]: change for change in answer["changes"]}
    slower = by_version[checksums[SLOWER]]
    assert slower["since"] == checksums[12]
    assert slower["possible"] == checksums[13:16]
    (step,) = (one for one in slower["steps"] if one["decides"])
    assert step["taken_back"] == checksums[REVERTED]
    assert step["degradation"] and step["ratio_low"] < 2 < step["ratio_high"]
    assert by_version[checksums[REVERTED]]["steps"][0]["takes_back"] == checksums[SLOWER]
    steps = by_version[checksums[20]]["steps"]
    moved = {step["location"].split(" ")[0]: step["moved_with"] for step in steps}
    assert {name: [one.split(" ")[0] for one in others] for name, others in moved.items()} == {
        "sort": ["merge"], "merge": ["sort"],
    }  # fmt: skip
    assert [one["location"].split(" ")[0] for one in by_version[checksums[30]]["gone"]] == ["old"]
    assert by_version[checksums[33]]["steps"][0]["ratio_low"] == 2.0
    page = (project.path.parent / "unused").name  # the keys are documented
    assert page


def test_the_text(perun, history):
    _, checksums = history
    done = perun("changes")
    text = done.out
    places = [text.index(f"{checksums[number][:7]} 2027") for number in (33, 20, SLOWER)]
    assert places == sorted(places)
    assert "Severe Degradation  main [peak]  0.977 KiB -> 1.95 KiB  +100 %" in text
    assert f"{checksums[SLOWER][:7]} 2027-01-15 Commit number {SLOWER} (Jane)" in text
    before = f"{checksums[13][:7]}, {checksums[14][:7]}"
    assert f"or one of 2 versions before it that were not measured: {before}" in text
    assert f"taken back by {checksums[REVERTED][:7]}" in text
    assert "moved to" in text and "moved from" in text and "went away: old" in text
    assert "doubtful change" in done.err and "perun compare" in done.err and "Maybe" not in text
    assert "Maybe" in perun("changes", "--all").out


def test_ranges_and_patterns(perun, history):
    _, checksums = history
    recent = steps_of(perun("changes", f"{checksums[25]}..", "--json").json)
    assert {version for version, _ in recent} == {checksums[number] for number in (REVERTED, 33, 35, 36)}
    # What comes after the end is not known, so that nothing takes the step back.
    early = perun("changes", checksums[25], "--series", "main*[[]excl*", "--json").json
    assert [
        step["taken_back"] for change in early["changes"] for step in change["steps"] if step["decides"]
    ] == [""]
    perun("changes", "--series", "nothing", code=6, err=("no series matches 'nothing'", "main"))
    perun("changes", "nowhere", code=4)
    perun("changes", "A..B", "--since", "C", code=2)
    named = perun("changes", f"{checksums[25]}..", "--format", "junit").lines[1]
    assert named == '<testsuites name="perun changes">'


def test_what_is_remembered_changes_no_answer(perun, history, damage=b"\x00nothing"):
    project, checksums = history
    first = perun("changes", checksums[36], "--json").json
    assert perun("changes", checksums[36], "--json").json == first
    later = perun("changes", "--json").json
    (project.path / ".perun" / "cache" / FILE).write_bytes(damage)
    assert steps_of(perun("changes", "--json").json) == steps_of(later)
    # Of a profile that goes away nothing is remembered.
    perun("rm", "-m", checksums[33], "0@i-1@i")
    assert (checksums[34], "main") in steps_of(perun("changes", "--json").json)


def test_a_project_without_profiles(perun, project):
    done = perun("changes")
    assert done.out.startswith("nothing is registered in 3 versions")
    assert "perun run --crawl-parents matrix" in done.err


def test_check_knows_the_versions_before_without_their_profiles(perun, measured):
    """What `changes` has read is in the cache, and shows the noise to `check`, too."""
    pair = "check", "diff", f"{measured.main[-1]}~1", measured.main[-1], "--json"
    first = perun(*pair, cwd=measured.path).json
    perun("changes", cwd=measured.path)
    store = Store(measured.path / ".perun")
    before, kept = (
        {entry.checksum for version in versions for entry in store.indexes.read(version)}
        for versions in (measured.main[:-2], measured.main[-2:])
    )
    for checksum in before - kept:
        store.object_path(checksum).unlink()
    assert perun(*pair, cwd=measured.path).json == first
    (measured.path / ".perun" / "cache" / FILE).unlink()
    assert perun(*pair, cwd=measured.path).json != first
