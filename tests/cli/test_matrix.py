"""`perun run matrix` as a batch: its plan, rounds, what is missing, resuming, and failures."""

import json
import os
import random
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from perun.plugin.api import MinorVersion
from perun.repository import journal as journal_file
from perun.repository import registering as saving
from perun.repository.jobs import Job, PluginConfig
from perun.repository.repository import Repository, open_repository
from perun.running.run import matrix as batch
from perun.running.run.schedule import plan_slots
from perun.store.pending import Pending

QUICK = "{name: time, params: {warmup: 0, repeat: 1}}"


@pytest.fixture
def record(project: Any, record: Path) -> Path:
    """What the program `sh run.sh` of the project has noted: its version and arguments, for each run."""
    record.touch()
    for number in (4, 5, 6):
        project.commit(f"Version {number}", {"run.sh": f"echo {number} $* >>$RECORD\n"})
    return record


def stored(project: Any) -> Counter[tuple[str, ...]]:
    """How many profiles there are of each version and job, pending or registered: the object, by its JSON."""
    repo = repository(project)
    found: Counter[tuple[str, ...]] = Counter()
    for path in (project.path / ".perun/jobs").glob("*.perf"):
        profile = json.loads(path.read_bytes())
        found[_key(profile["origin"], profile)] += 1
    for version in project.git("rev-list", "--all").split():
        for entry in repo.store.indexes.read(version):
            found[_key(version, json.loads(repo.store.objects.get_body(entry.checksum)))] += 1
    return found


def _key(version: str, profile: dict[str, Any]) -> tuple[str, ...]:
    header = profile["header"]
    params = json.dumps(profile["collector_info"]["params"])
    return version, header["cmd"], header["args"], header["workload"], params


def repository(project: Any) -> Repository:
    return open_repository(project.path, dict(os.environ))


def journals(project: Any) -> list[Path]:
    return sorted((project.path / ".perun/batches").glob("*"))


def headings(outcome: Any) -> list[str]:
    return [line.split(maxsplit=2)[2] for line in outcome.lines if line.startswith("* ")]


# -- which versions, and how often ---------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "versions"), [
    (["--since", "HEAD~3"], [6, 5, 4]),
    (["--since", "HEAD~4", "--every", "2"], [6, 4]),
    (["--every", "2"], [6, 4, 2]),
    (["--every", "100"], [6]),
    (["--since", "HEAD~1"], [6]),
])  # fmt: skip
def test_some_of_history(perun, project, configure, options, versions) -> None:
    for number in (4, 5, 6):
        project.commit(f"Commit {number}")
    configure(f"cmds: ['true']\ncollectors: [{QUICK}]\n")
    outcome = perun("run", "matrix", *options)
    if len(versions) > 1:
        assert headings(outcome) == [f"Commit {number}" for number in versions]
    assert len(stored(project)) == len(versions)


def test_the_history_is_drawn(perun, project, configure) -> None:
    """Lanes beside the versions, and below each what became of its jobs; with -q neither."""
    project.git("checkout", "-q", "-b", "side", "HEAD~1")
    project.commit("On the side")
    project.git("checkout", "-q", "main")
    project.git("merge", "-q", "--no-ff", "-m", "Merge", "side")
    configure(f"cmds: ['true']\ncollectors: [{QUICK}]\n")
    options = ("matrix", "--quiet-env")
    lines = [re.sub(r"stored .*", "stored", line) for line in perun("run", "-c", *options).lines]
    lines = [line for line in lines if not re.search("(real|cpu) time", line)]
    drawn = [line for line in lines if re.fullmatch(r"[*|\\/ ]+([0-9a-f]{10} .*|stored)?", line)]
    log = project.git("log", "--format=%h %s", "--abbrev=10").splitlines()
    short = {line[11:]: line[:10] for line in log}
    assert drawn == [
        f"* {short['Merge']} Merge",
        "| stored",
        "|\\",
        *(
            [
                f"| * {short['On the side']} On the side",
                "| | stored",
                f"* | {short['Commit 3']} Commit 3",
                "| | stored",
            ]
            if drawn[3].endswith("side")
            else [
                f"* | {short['Commit 3']} Commit 3",
                "| | stored",
                f"| * {short['On the side']} On the side",
                "| | stored",
            ]
        ),
        "|/",
        f"* {short['Commit 2']} Commit 2",
        "| stored",
        f"* {short['Commit 1']} Commit 1",
        "  stored",
    ]
    # What is left out between two versions is no gap in the line.
    some = [line for line in perun("run", *options, "--every", "4").lines if line.startswith("*")]
    assert some == [f"* {short['Merge']} Merge", f"* {short['Commit 1']} Commit 1"]
    assert not re.search("[*|]", perun("run", "-c", *options, "-q").out)


def test_since_goes_with_other_heads(perun, project, configure) -> None:
    configure(f"cmds: ['true']\ncollectors: [{QUICK}]\n")
    assert headings(perun("run", "-m", "HEAD~1", "matrix", "--since", "HEAD~2", "--dry-run")) == ["Commit 2"]


def test_no_version_left(perun: Callable[..., Any], project: Any, configure: Callable[[str], None]) -> None:
    configure(f"cmds: ['true']\ncollectors: [{QUICK}]\n")
    perun("run", "matrix", "--since", "HEAD", code=2, err="there is no version after HEAD")
    perun("run", "matrix", "--since", "no-such", code=4)
    perun("run", "matrix", "--every", "0", code=2)


def test_rounds_are_interleaved_in_random_order(perun, project, record, configure) -> None:
    configure(f"cmds: [sh run.sh]\nargs: [a, b]\ncollectors: [{QUICK}]\n")
    outcome = perun("run", "matrix", "--since", "HEAD~2", "--rounds", "3")
    lines = record.read_text().splitlines()
    rounds = [lines[start : start + 4] for start in (0, 4, 8)]
    orders = [[f"{version} {arg}" for version in order for arg in "ab"] for order in ((6, 5), (5, 6))]
    assert all(one in orders for one in rounds)
    assert headings(outcome) == [
        f"Version {one[0][0]} (round {number} of 3)"
        for number, lines in enumerate(rounds, 1)
        for one in (lines[:2], lines[2:])
    ]
    assert set(stored(project).values()) == {3}
    assert len(stored(project)) == 4


def test_the_order_of_a_round_is_decided_by_dice() -> None:
    versions = [MinorVersion("", "", "", str(number), "", ()) for number in range(6)]
    job = Job("true", "", "", PluginConfig("time", None))
    slots = plan_slots([job], versions, 4, random.Random(1))
    orders = [[slot.version.checksum for slot in slots if slot.round == number] for number in (1, 2, 3, 4)]
    assert all(sorted(order) == list("012345") for order in orders)
    assert len(set(map(tuple, orders))) == 4
    assert [task.number for slot in slots for task in slot.tasks] == list(range(24))
    assert [slot.version for slot in plan_slots([job], versions)] == versions


@pytest.mark.parametrize("registering", [True, False])
def test_rounds_of_one_version_prepare_it_once(perun, project, record, configure, registering) -> None:
    """Profiles of one second, and of one name, are all kept."""
    configure(
        f"cmds: [sh run.sh]\ncollectors: [{QUICK}]\nexecute: {{pre_run: [sh run.sh build]}}\n"
        f"profiles: {{register_after_run: {registering}}}\n"
    )
    perun("run", "matrix", "--rounds", "5")
    assert record.read_text().splitlines() == ["6 build", *["6"] * 5]
    assert list(stored(project).values()) == [5]


# -- what is missing -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("registering", [True, False])
def test_missing(perun, project, record, configure, registering) -> None:
    profiles = f"profiles: {{register_after_run: {registering}}}\n"
    configure(f"cmds: [sh run.sh]\nargs: [a]\ncollectors: [{QUICK}]\n{profiles}")
    perun("run", "-m", "HEAD~1", "matrix")
    configure(f"cmds: [sh run.sh]\nargs: [a, b]\ncollectors: [{QUICK}]\n{profiles}")
    perun("run", "matrix", "--since", "HEAD~3", "--missing")
    assert record.read_text().splitlines() == ["5 a", "6 a", "6 b", "5 b", "4 a", "4 b"]
    assert set(stored(project).values()) == {1}
    outcome = perun("run", "matrix", "--since", "HEAD~3", "--missing")
    assert outcome.out == "nothing to run: no profile is missing\n"
    perun("run", "-m", "HEAD~2", "matrix", "--missing", "--rounds", "3")
    assert record.read_text().splitlines()[6:] == ["4 a", "4 b"] * 2
    assert journals(project) == []


def test_missing_with_the_same_collector_twice(perun, project, configure) -> None:
    other = "{name: time, params: {warmup: 0, repeat: 2}}"
    configure(f"cmds: ['true']\ncollectors: [{other}]\n")
    perun("run", "matrix")
    configure(f"cmds: ['true']\ncollectors: [{QUICK}, {other}]\n")
    assert perun("run", "matrix", "--missing").out.count("stored") == 1
    assert set(stored(project).values()) == {1}
    assert len(stored(project)) == 2


SAMPLED = """\
from dataclasses import dataclass

from perun.plugin.params import param, to_mapping
from perun.profile.factory import Profile


@dataclass(frozen=True)
class Params:
    sampling: tuple[tuple[str, int], ...] = param((), short="-s", pair=("func", "sample"), help="Every.")


class Sampled:
    name = "sampled"
    help = "Notes its parameters."
    Params = Params

    def collect(self, run, params, ctx):
        header = {"type": "time", "units": {"time": "s"}, "cmd": run.cmd, "args": "", "workload": ""}
        info = {"name": self.name, "params": to_mapping(params)}
        return Profile({"header": header, "collector_info": info, "postprocessors": []})


PLUGIN = Sampled
"""


@pytest.mark.parametrize("spelled", ["[{func: f, sample: 2}]", "[[f, 2]]", "{f: '2'}"])
def test_missing_where_pairs_are_spelled_in_any_way(perun, project, configure, spelled, share) -> None:
    project.write({".perun/plugins/collect/sampled.py": SAMPLED})
    share(f"plugins: {{trusted: [{project.path}]}}\n")
    perun("collect", "-c", "true", "sampled", "-s", "f", "2")
    other = "{name: sampled, params: {sampling: {f: 3}}}"
    configure(f"cmds: ['true']\ncollectors: [{{name: sampled, params: {{sampling: {spelled}}}}}, {other}]\n")
    assert perun("run", "matrix", "--missing").out.count("stored") == 1
    assert perun("run", "matrix", "--missing").out == "nothing to run: no profile is missing\n"
    assert sorted(json.loads(params)["sampling"][0]["sample"] for *_, params in stored(project)) == [2, 3]


# -- the plan ------------------------------------------------------------------------------------------------


def test_dry_run(perun, project, record, configure) -> None:
    configure(f"cmds: [sh run.sh]\nargs: [a, b]\ncollectors: [{QUICK}]\nexecute: {{pre_run: ['true']}}\n")
    before = sorted(project.path.rglob("*"))
    outcome = perun("run", "matrix", "--since", "HEAD~2", "--dry-run")
    head, parent = project.git("rev-list", "-2", "HEAD").split()
    jobs = ["  sh run.sh a (time)", "  sh run.sh b (time)"]
    assert outcome.lines == [
        *(f"* {head[:10]} Version 6", *jobs),
        *(f"* {parent[:10]} Version 5", *jobs),
        "4 jobs in 2 versions; no stored profile says how long they take",
    ]
    assert sorted(project.path.rglob("*")) == before
    assert record.read_text() == ""

    configure(f"cmds: [sh run.sh]\nargs: [a]\ncollectors: [{QUICK}]\nexecute: {{pre_run: ['true']}}\n")
    perun("run", "matrix")
    took(project, {"a": 0.25})
    known = project.path / ".perun/cache/preparations.json"
    ((commands, prepared),) = json.loads(known.read_bytes()).items()
    known.write_text(json.dumps({commands: {"seconds": dict.fromkeys(prepared["seconds"], 0.5)}}))
    configure(f"cmds: [sh run.sh]\nargs: [a, b]\ncollectors: [{QUICK}]\nexecute: {{pre_run: ['true']}}\n")
    outcome = perun("run", "matrix", "-n", "--since", "HEAD~2", "--rounds", "2")
    assert outcome.lines[1] == "  sh run.sh a (time, about 250 ms)"
    assert outcome.lines[2] == "  sh run.sh b (time)"
    # The versions of a round come in a random order: two rounds in a row may begin and end with the same one.
    assert re.fullmatch(
        r"8 jobs in 2 versions: about (2\.5 s, 1\.5|3 s, 2) s of it for execute\.pre_run; "
        r"4 of them of unknown duration are not counted in",
        outcome.lines[-1],
    )


def test_estimates_know_the_parameters(perun, project, configure, fake) -> None:
    slow = "{name: fake, params: {repeat: 5}}"
    for collector, seconds in ((slow, 1.5), (fake, 0.2)):
        configure(f"cmds: [fake]\ncollectors: [{collector}]\n")
        perun("run", "-m", "HEAD~1", "matrix")
        took(project, {"": seconds})
        perun("add", "-m", "HEAD~1", "0@p")
    configure(f"cmds: [fake]\ncollectors: [{slow}, {fake}]\n")
    told = perun("run", "matrix", "--alone", "--dry-run")
    assert re.findall(r"about (\S+ m?s)\)", told.out) == ["1.5 s", "200 ms"]


def took(project: Any, seconds: Mapping[str, float]) -> None:
    """Let the pending profiles say that their jobs took so long, by their arguments."""
    for path in (project.path / ".perun/jobs").glob("*.perf"):
        profile = json.loads(path.read_bytes())
        profile["collector_info"]["seconds"] = seconds[profile["header"]["args"]]
        path.write_text(json.dumps(profile))


def test_remaining_time_on_a_terminal(perun, terminal, project, configure, tmp_path) -> None:
    """It comes from stored profiles: the first job is known to take ten hours, the second twenty."""
    wait = tmp_path / "wait"
    configure(f"cmds: [sh {wait}]\nargs: [first, second]\ncollectors: [{QUICK}]\n")
    wait.write_text("")
    perun("run", "matrix")
    took(project, {"first": 36_000, "second": 72_000})
    # The first job goes on once the terminal shows it.
    wait.write_text(f"until [ -e {tmp_path}/shown ]; do sleep 0.05; done\n")
    shown = re.compile(r"measuring \S+ \S*0/2\S* [\d:]+, (30:00:00|29:\d\d:\d\d) left")

    def seen(text: str) -> None:
        if shown.search(re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", text)):
            (tmp_path / "shown").touch()

    terminal("run", "matrix", columns=80, seen=seen)
    assert (tmp_path / "shown").exists()


# -- failures ------------------------------------------------------------------------------------------------


def test_summary_names_all_that_failed(perun, project, record, configure) -> None:
    configure(
        f"cmds: [sh run.sh, 'false']\ncollectors: [{QUICK}]\nexecute: {{pre_run: [grep -q -v 5 run.sh]}}\n"
    )
    outcome = perun("run", "matrix", "--since", "HEAD~3", "--quiet-env", check=False)
    six, five, four = project.git("rev-list", "-3", "HEAD").split()
    assert outcome.code == 8
    broken = 'false (time): the command "false" exited with status 1 (run 1 of 1)'
    broken = broken.replace('"', "'")
    assert outcome.lines[-4:] == [
        "what failed:",
        f"  {six[:10]} {broken}",
        f"  {four[:10]} {broken}",
        f"  {five[:10]}: execute.pre_run: 'grep -q -v 5 run.sh' ended with status 1",
    ]
    assert outcome.err.startswith(
        "error: 2 profiles collected, 2 jobs failed, 1 version skipped; the first: "
    )


def test_versions_that_do_not_build(perun, project, record, environment, configure) -> None:
    def matrix(*options: str) -> Any:
        record.write_text("")
        return perun("run", "matrix", "--since", "HEAD~3", "--quiet-env", *options, check=False)

    build = "sh -c 'sh run.sh build; test -n \"$MENDED\" || grep -q -v 5 run.sh'"
    each = f"build_cache: 0, pre_run: [{json.dumps(build)}]"
    configure(f"cmds: ['true']\ncollectors: [{QUICK}]\nexecute: {{{each}}}\n")
    assert matrix().code == 8
    assert record.read_text().splitlines() == ["6 build", "5 build", "4 build"]
    again = matrix()
    assert again.code == 0
    assert again.err == ""
    assert record.read_text().splitlines() == ["6 build", "4 build"]
    assert f"| skipped: known to fail: execute.pre_run: {build!r} ended with status 1" in again.lines
    assert "| hint: try such versions again with --retry-broken" in again.lines
    assert "2 jobs in 2 versions: about" in matrix("--dry-run").out

    only = perun("run", "-m", "HEAD~1", "matrix", check=False)
    assert only.code == 8  # there was nothing else
    assert "known to fail" in only.err
    assert matrix("--retry-broken").code == 8
    environment["MENDED"] = "yes"
    assert matrix("--retry-broken").code == 0
    assert record.read_text().splitlines() == ["6 build", "5 build", "4 build"]
    assert matrix().out.count("stored") == 3  # it is forgotten
    del environment["MENDED"]
    assert matrix().code == 8
    configure(f"cmds: ['true']\ncollectors: [{QUICK}]\nexecute: {{pre_run: ['true']}}\n")
    assert matrix().out.count("stored") == 3  # other commands may well build it


def test_uncommitted_changes_say_nothing_of_the_version(perun, project, configure) -> None:
    configure(f"cmds: ['true']\ncollectors: [{QUICK}]\nexecute: {{pre_run: [grep -q 3 file.txt]}}\n")
    project.write({"file.txt": "changed\n"})
    perun("run", "--force-dirty", "matrix", code=8)
    project.git("checkout", "file.txt")
    perun("run", "matrix")


# -- resuming ------------------------------------------------------------------------------------------------

SIXTY = "cmds: [one, other]\nargs: [a, b, c, d, e]\ncollectors: [{name: fake}]\n"
"""Ten jobs: sixty on three versions in two rounds."""
SIXTY_OPTIONS = ("run", "-c", "matrix", "--rounds", "2")


def expected(project: Any, rounds: int = 2) -> Counter[tuple[str, ...]]:
    """What an undisturbed run of the sixty jobs gives."""
    (real,) = {key[4] for key in stored(project)} or {json.dumps({"repeat": 1})}
    return Counter({
        (version, cmd, arg, "", real): rounds
        for version in project.git("rev-list", "HEAD").split()
        for cmd in ("one", "other")
        for arg in "abcde"
    })  # fmt: skip


def test_nothing_to_resume(perun: Callable[..., Any], project: Any, configure: Callable[[str], None]) -> None:
    configure(f"cmds: ['true']\ncollectors: [{QUICK}]\n")
    for _ in range(2):
        perun("run", "matrix", "--resume", code=2, err="no batch was interrupted")
        perun("run", "matrix")
    assert journals(project) == []


def test_what_failed_is_tried_again(perun, project, record, configure) -> None:
    configure(f"cmds: [sh run.sh, test -e mended]\ncollectors: [{QUICK}]\n")
    perun("run", "matrix", code=8)
    (journal,) = (project.path / ".perun/batches").glob("*.jsonl")
    assert '["resumed", ' not in journal.read_text()
    perun("run", "matrix", "--resume", code=8)
    assert journal.read_text().count('["resumed", ') == 1
    project.write({"mended": ""})
    outcome = perun("run", "matrix", "--resume", "--dry-run")
    assert journal.read_text().count('["resumed", ') == 1
    assert outcome.lines[1:2] == ["  test -e mended (time)"]
    perun("run", "matrix", "--resume")
    assert record.read_text().splitlines() == ["6"]
    assert set(stored(project).values()) == {1}
    assert len(stored(project)) == 2
    perun("run", "matrix", "--resume", code=2)


@pytest.mark.parametrize(
    "options", [["--since", "HEAD~1"], ["--every", "2"], ["--rounds", "2"], ["--missing"]]
)
def test_resume_goes_with_no_other_plan(perun, project, configure, options) -> None:
    configure(SIXTY)
    outcome = perun("run", "matrix", "--resume", *options, code=2)
    refusal = "--resume runs the rest of an existing plan and takes no option that changes the plan"
    assert refusal in outcome.err
    perun("run", "-m", "HEAD", "matrix", "--resume", code=2)


def test_a_changed_matrix_is_not_resumed(perun, project, configure) -> None:
    configure(f"cmds: ['true', 'false']\ncollectors: [{QUICK}]\n")
    perun("run", "matrix", check=False)
    configure(f"cmds: ['true', 'echo']\ncollectors: [{QUICK}]\n")
    perun("run", "matrix", "--resume", code=5, err=f"has changed since the batch of {journals(project)[0]}")


def commands_of(pid: int) -> list[list[str]]:
    """The commands that the process runs now; none where one of them ends meanwhile."""
    with suppress(psutil.Error):
        return [one.cmdline() for one in psutil.Process(pid).children(recursive=True)]
    return []


def test_an_interruption_says_how_to_go_on(project, perun, command, environment, configure) -> None:
    configure(f"cmds: [sleep]\nargs: ['0', '30', '0.01']\ncollectors: [{QUICK}]\n")
    process = subprocess.Popen(
        [*command, "run", "matrix"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while ["sleep", "30"] not in commands_of(process.pid):
        assert process.poll() is None
        time.sleep(0.01)
    while_it_runs = perun("run", "matrix", "--resume", check=False)
    assert while_it_runs.code == 2  # nobody else may go on with it
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert b"interrupted, 2 of 3 jobs are left; run them with: perun run matrix --resume" in err
    listed = perun("run", "matrix", "--resume", "--dry-run").lines
    assert [line.partition(" (")[0] for line in listed[1:3]] == ["  sleep 30", "  sleep 0.01"]

    configure(f"cmds: ['true']\ncollectors: [{QUICK}]\n")
    other = perun("run", "matrix")
    assert "an earlier batch was interrupted; perun run matrix --resume runs the rest of it" in other.err


STEPS = [
    (journal_file, "_append"),
    (Pending, "_claim"),
    (Pending, "_refresh"),
    (Pending, "remove"),
    (saving, "link"),
]
"""Functions before and after which a batch is ended: all that write."""


@pytest.mark.parametrize("after", [True, False], ids=["after", "before"])
@pytest.mark.parametrize(("owner", "name"), STEPS, ids=[name for _, name in STEPS])
@pytest.mark.parametrize("registering", [True, False], ids=["registering", "pending"])
@pytest.mark.each_value("owner name", "after", "registering")
def test_ended_at_each_step(project, fake, configure, monkeypatch, owner, name, after, registering) -> None:
    """A batch of two jobs is ended at every call of a function that writes; each profile is there once."""
    configure(
        f"cmds: [fake]\nargs: [a, b]\ncollectors: [{fake}]\nprofiles: {{register_after_run: {registering}}}\n"
    )
    original = getattr(owner, name)
    ends_at = 1  # the first call of all may be that which begins the journal
    calls = 0

    def ending(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == ends_at and not after:
            raise KeyboardInterrupt
        result = original(*arguments, **named)
        if calls == ends_at:
            raise KeyboardInterrupt
        return result

    for ends_at in range(1, 30):
        calls = 0
        batch_of_two(project, monkeypatch, owner, name, ending)
        for path in journals(project):
            assert path.suffix == ".jsonl", path
        if calls < ends_at:
            break
        repo = repository(project)
        try:
            planned, kept = batch.resumable(repo)
        except Exception:
            # The batch had not begun, or has come to its end.
            planned, kept = batch.plan(repo, batch.BatchOptions()), None
            if stored(project):
                kept, planned = None, batch.BatchPlan((), (), planned.placement, None, registering)
        if planned.total:
            list(batch.run(repo, planned, kept))
        elif kept is not None:
            kept.close()
        assert set(stored(project).values()) == {1}, ends_at
        assert len(stored(project)) == 2
        clear(project)
    assert ends_at > 1 or (not registering and name in ("link", "remove"))


def batch_of_two(
    project: Any, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, ending: Callable[..., Any]
) -> None:
    repo = repository(project)
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, ending)
        stream = batch.run(repo, batch.plan(repo, batch.BatchOptions()))
        try:
            list(stream)
        except KeyboardInterrupt:
            pass
        finally:
            stream.close()


def clear(project: Any) -> None:
    for path in (*(project.path / ".perun/jobs").glob("*.perf"), *journals(project)):
        path.unlink()
    repo = repository(project)
    for entry in repo.store.indexes.read(project.head):
        repo.store.indexes.remove(project.head, [entry])


@pytest.mark.slow
@pytest.mark.parametrize("registering", [True, False], ids=["registering", "pending"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "kill"])
def test_interrupted_at_random(project, fake, command, environment, configure, number, registering) -> None:
    configure(f"{SIXTY}profiles: {{register_after_run: {registering}}}\n")
    assert _interrupt_until_done(project, command, environment, number, random.Random(number))
    assert stored(project) == expected(project)
    assert journals(project) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_interrupted_at_random_often(project, fake, command, environment, configure, seed) -> None:
    configure(f"{SIXTY}profiles: {{register_after_run: {bool(seed % 2)}}}\n")
    chance = random.Random(seed)
    number = chance.choice([signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
    _interrupt_until_done(project, command, environment, number, chance)
    assert stored(project) == expected(project)
    assert journals(project) == []


def _interrupt_until_done(
    project: Any,
    command: list[str],
    environment: dict[str, str],
    number: signal.Signals,
    chance: random.Random,
) -> int:
    """Start the sixty jobs, end them after a random number of steps and resume until they are done; how often
    they were ended.

    A job is at most four steps, so that each time at least one of them is finished.
    """
    arguments = [*command, *SIXTY_OPTIONS]
    interruptions = 0
    while True:
        wanted = _steps(project) + chance.randint(4, 60)
        with subprocess.Popen(
            arguments, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as process:
            while process.poll() is None and _steps(project) < wanted:
                time.sleep(0.005)
            process.send_signal(number)
            err = process.communicate()[1].decode()
        assert "Traceback" not in err and "bug" not in err, err
        if process.returncode == 0 or not journals(project):  # it may have been ended when all was done
            return interruptions
        interruptions += 1
        arguments = [*command, "run", "matrix", "--resume"]


def _steps(project: Any) -> int:
    """The lines of all journals."""
    return sum(path.read_bytes().count(b"\n") for path in journals(project) if path.exists())
