"""Files that say what is to be run later: who has not written them himself is asked."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from perun.core.errors import NotTrusted
from perun.fuzz import results
from perun.fuzz.corpus import CorpusMember
from perun.fuzz.findings import FORMAT
from perun.fuzz.findings import CampaignJournal as CampaignJournal
from perun.plugin.api import SavedState
from perun.repository import bisections, copies
from perun.repository import journal as journal_file
from perun.repository.repository import Repository, open_repository
from perun.running.bisect.data import BisectRequest, case_of
from perun.running.fuzz.options import FuzzOptions, marked
from perun.running.pool import places
from perun.running.pool.places import SshPlace


@pytest.fixture
def theirs(perun: Any, clone: Any) -> Any:
    """A clone whose `.perun` is tracked, would run little, and is trusted."""
    settings = {"cmds": ["true"], "collectors": [{"name": "time", "params": {"warmup": 0, "repeat": 1}}]}
    (clone.path / ".perun" / "local.yml").write_text(json.dumps(settings))
    shutil.rmtree(clone.path / ".perun" / "plugins")
    for number in range(3):
        (clone.path / "file.txt").write_text(f"{number}\n")
        pulled(clone)
    perun("trust")
    assert perun("trust", "--show").out.startswith(f"{clone.path}/.perun: trusted\n  cmds: true\n")
    return clone


def pulled(clone: Any) -> None:
    """What is in the folder comes by a commit of somebody else."""
    clone.git("add", "--force", "--all")
    clone.git("commit", "--quiet", "--message", "Pulled")


def opened(clone: Any) -> Repository:
    return open_repository(clone.path, dict(os.environ))


def plan(clone: Any, **asked: Any) -> dict[str, Any]:
    """A bisection from the commit before the last one to that."""
    ends = {"good": clone.git("rev-parse", "HEAD~1").strip(), "bad": clone.git("rev-parse", "HEAD").strip()}
    return {"asked": {**ends, **asked}}


@pytest.mark.parametrize("what", ["script", "cmd"])
def test_the_bisection_of_a_pull_is_asked_about(perun, terminal, theirs: Any, traps: Any, what: str) -> None:
    folder = theirs.path / ".perun" / "bisections"
    journal_file.create(folder, plan(theirs, **{what: traps("bisection")})).close()
    pulled(theirs)
    refused = perun("bisect", "--resume", check=False)
    assert (refused.code, "trap.sh bisection" in refused.err) == (11, True), refused.err
    assert "which has changed since you trusted it" in refused.err
    shown = perun("trust", "--show", "--json").json
    assert not shown["trusted"]
    (item,) = [one for one in shown["runs"] if one["what"].startswith("bisections/")]
    assert item["text"] == traps("bisection")
    assert "Do you trust it?" in terminal("bisect", "--resume", keys="n\n").out
    assert perun("run", "matrix", check=False).code == 11, "nothing else runs either, before it was looked at"
    assert traps.sprung == []
    perun("trust")
    perun("bisect", "--resume", check=False)
    assert traps.sprung == ["bisection"]
    perun("bisect", "--reset", check=False)
    assert perun("trust", "--show", "--json").json["trusted"], "what is gone needs no question"


def test_ones_own_bisection_goes_on_unasked(perun: Any, theirs: Any, traps: Any) -> None:
    bisections.begin(opened(theirs), plan(theirs, script=traps("own"))).close()
    pulled(theirs)
    shown = perun("trust", "--show", "--json").json
    assert shown["trusted"] and {one["what"] for one in shown["runs"]} == {"cmds", "collectors"}
    perun("bisect", "--resume", check=False)
    assert traps.sprung == ["own"]


@pytest.mark.parametrize("change", ["another command", "another repository", "another key", "no key"])
def test_a_mark_is_of_this_user_this_repository_and_this_command(
    perun: Any, theirs: Any, traps: Any, tmp_path: Path, change: str
) -> None:
    journal = bisections.begin(opened(theirs), plan(theirs, script=traps("own")))
    journal.close()
    written = dict(journal.plan)
    key = Path(os.environ["PERUN_CONFIG_DIR"], "trust", "key")
    assert key.stat().st_mode & 0o777 == 0o600
    folder = theirs.path / ".perun" / "bisections"
    if change == "another command":
        journal.path.unlink()
        written["asked"]["script"] = traps("evil")
        journal_file.create(folder, written).close()
    elif change == "another repository":
        there = Repository(tmp_path, tmp_path, opened(theirs).config, dict(os.environ))
        (tmp_path / ".perun").mkdir()
        made = bisections.begin(there, plan(theirs, script=traps("evil")))
        made.close()
        shutil.copy(made.path, folder)
    elif change == "another key":
        key.write_bytes(bytes(32))
    else:
        key.unlink()
    assert perun("bisect", "--resume", check=False).code == 11 and traps.sprung == []


def test_the_batch_and_the_saved_state_of_a_pull_are_asked_about(perun: Any, theirs: Any) -> None:
    folder = theirs.path / ".perun"
    head = theirs.git("rev-parse", "HEAD").strip()
    written = {"jobs": [], "versions": [], "stops": [[head, 0, []]]}
    journal_file.create(folder / "batches", written).close()
    pulled(theirs)
    refused = perun("run", "matrix", "--resume", check=False)
    assert (refused.code, f"the job matrix in {head[:10]}" in refused.err) == (11, True), refused.err
    shutil.rmtree(folder / "batches")
    journal = folder / "in-place.json"
    journal.write_text(
        json.dumps({"saved": False, "state": "HEAD~1", "stash": "", "folder": str(theirs.path)})
    )
    pulled(theirs)
    refused = perun("recover", check=False)
    assert (refused.code, "a checkout of HEAD~1" in refused.err) == (11, True), refused.err
    assert theirs.git("rev-parse", "HEAD").strip() != head, "nothing was checked out"
    copies._write_journal(opened(theirs), SavedState(False, "main", ""))
    assert perun("trust", "--show", "--json").json["trusted"]
    perun("recover")
    assert not journal.exists()


def campaign(folder: Path, settings: dict[str, Any]) -> Path:
    """The results of a campaign that has found one slow input."""
    (folder / "slow.txt").parent.mkdir(parents=True)
    (folder / "slow.txt").write_bytes(b"slow")
    one = results.Result("slow.txt", results.SLOW, "s", "s", ("T.1",), 4, None, None, 0.1, 1.0, 3)
    seed = results.Seed("s", "s", 5, 0, 0.001)
    # A stranger may tell here another program than the settings do.
    program = results.Program("./harmless", "", ".")
    results.save(folder, results.Campaign(program, settings, 1, (seed,), 0, (one,)))
    journal = CampaignJournal(folder)
    journal.write("campaign", format=FORMAT, settings=settings, random_seed=1)
    journal.member("seed", CorpusMember(0, "s", b"fine\n", "", "s", ()))
    journal.write("began")
    journal.close()
    return folder


def fuzzing(traps: Any, folder: Path, name: str) -> FuzzOptions:
    return FuzzOptions(
        traps(name), "", ("s",), folder, coverage=False, hang=5.0, seconds=2.0, plotting=False, minimize=0
    )


USES = (("--replay", "{}"), ("--keep", "{}"), ("-o", "{}", "--resume"))


@pytest.mark.each_value("use")
@pytest.mark.parametrize("use", USES, ids=lambda use: use[-1] if use[0] == "-o" else use[0])
def test_the_campaign_of_somebody_else_is_asked_about(perun, terminal, theirs: Any, traps: Any, use) -> None:
    folder = theirs.path / "found"
    options = fuzzing(traps, folder, "campaign")
    campaign(folder, {**options.as_settings(), "build": "", "mark": "0" * 64})
    words = [word.format(folder) for word in use]
    local = (theirs.path / ".perun" / "local.yml").read_bytes()
    refused = perun("fuzz", *words, check=False)
    assert (refused.code, f"cmd: {traps('campaign')}" in refused.err) == (11, True), refused.err
    assert str(folder) in refused.err and "PERUN_TRUST=1" in refused.err
    asked = terminal("fuzz", *words, keys="n\n")
    assert f"cmd: {traps('campaign')}" in asked.out
    assert (theirs.path / ".perun" / "local.yml").read_bytes() == local
    assert traps.sprung == []


def test_a_yes_to_a_campaign_holds_for_that_campaign(perun, terminal: Any, theirs: Any, traps: Any) -> None:
    settings = fuzzing(traps, theirs.path / "found", "campaign").as_settings()
    folder = campaign(theirs.path / "found", settings)
    terminal("fuzz", "--replay", folder, keys="y\n")
    assert traps.sprung == ["campaign"]
    assert perun("fuzz", "--replay", folder, check=False).code != 11
    shutil.rmtree(folder)
    campaign(folder, {**settings, "build": traps("build")})
    refused = perun("fuzz", "--replay", folder, check=False)
    assert (refused.code, f"build: {traps('build')}" in refused.err) == (11, True), refused.err
    assert perun("fuzz", "--replay", folder, env={"PERUN_TRUST": "1"}, check=False).code != 11


def test_ones_own_campaign_is_measured_again_wherever_it_lies(perun, theirs, traps: Any, tmp_path) -> None:
    options = fuzzing(traps, tmp_path / "found", "own")
    folder = campaign(tmp_path / "found", marked(opened(theirs), options))
    assert perun("fuzz", "--replay", folder, check=False).code == 0
    assert traps.sprung == ["own"]
    folder.rename(tmp_path / "moved")
    assert perun("fuzz", "--replay", tmp_path / "moved", check=False).code == 0


@pytest.mark.parametrize("shared", [True, False], ids=["tracked", "own"])
def test_a_command_that_only_profiles_name_is_asked_about(
    perun: Any, theirs: Any, write_profile: Any, traps: Any, shared: bool
) -> None:
    for version in ("HEAD~1", "HEAD"):
        write_profile(f"{version}.perf", cmd=traps("profile"), workload="", origin=None)
        perun("add", "--force", "--minor", version, f"{version}.perf")
    (theirs.path / ".perun" / "local.yml").write_text("{}\n")
    theirs.git("rm", "--quiet", "-r", "--cached", ".perun")
    theirs.git("commit", "--quiet", "--message", "Leave it out")
    ends = "HEAD~2..HEAD~1"
    if shared:
        theirs.git("add", "--force", ".perun")
        theirs.git("commit", "--quiet", "--message", "With it")
        ends = "HEAD~3..HEAD~2"
    perun("trust")
    told = perun("explain", ends, check=False)
    assert (told.code == 11) is shared, told.err
    assert not shared or f"cmd: {traps('profile')}" in told.err
    assert not shared or "name the command: -c CMD" in told.err
    assert traps.sprung == ([] if shared else ["profile"])
    found = BisectRequest(cmd=traps("profile"))
    case_of(opened(theirs), found, found)  # that is typed
    if shared:
        with pytest.raises(NotTrusted, match="profile"):
            case_of(opened(theirs), found, BisectRequest())
    else:
        case_of(opened(theirs), found, BisectRequest())


def test_the_machines_of_a_tracked_file_are_asked_about(perun: Any, theirs: Any, traps: Any) -> None:
    file = theirs.path / "hosts.yml"
    file.write_text(json.dumps({"hosts": [{"host": "localhost", "python": traps("python")}]}))
    for words in (("pool", "check", "ssh:hosts.yml"), ("run", "matrix", "--on", "ssh:hosts.yml")):
        pulled(theirs)
        refused = perun(*words, check=False)
        assert (refused.code, f"localhost: {traps('python')}" in refused.err) == (11, True), refused.err
        theirs.git("rm", "--quiet", "--cached", "hosts.yml")
        theirs.git("commit", "--quiet", "--message", "Leave it out")
        assert places.brought(SshPlace(file), dict(os.environ)) is None


def test_a_pipe_in_the_place_of_a_campaign_is_not_waited_for(perun: Any, theirs: Any, traps: Any) -> None:
    folder = theirs.path / "found"
    campaign(folder, marked(opened(theirs), fuzzing(traps, folder, "own")))
    journal = folder / "logs" / "campaign.jsonl"
    journal.unlink()
    os.mkfifo(journal)
    for use in USES[::2]:
        refused = perun("fuzz", *(word.format(folder) for word in use), check=False)
        assert (refused.code, "it is not a regular file" in refused.err) == (6, True), refused.err


@pytest.mark.each_value("settings")
@pytest.mark.parametrize("settings", [{}, {"cmd": 1}, {"size": 3}, {"samples": None}], ids=str)
def test_odd_settings_of_a_campaign_are_named(perun: Any, theirs: Any, traps: Any, settings) -> None:
    folder = theirs.path / "found"
    campaign(folder, {**fuzzing(traps, folder, "own").as_settings(), **settings} if settings else {})
    for use in USES:
        refused = perun("fuzz", *(word.format(folder) for word in use), check=False)
        assert refused.code in (6, 11), refused.err
    assert traps.sprung == []
