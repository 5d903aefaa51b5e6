"""Files of a `.perun` that are none: links out, pipes, devices, forged caches. Nothing waits or grows."""

import json
import os

import pytest

from perun.repository.user import links_of
from perun.store import FOLDERS

LIMIT = 1 << 30
"""Bytes of memory that a command may have; `/dev/zero` read to its end would take any amount."""
PLACES = (
    "local.yml", "cache/config.json", "cache/preparations.json", "jobs/.index", "jobs/bad.perf",
    "in-place.json", "trust-mark", "hooks/news", "batches/20240101-000000-000000-1.jsonl", "{index}",
    "{index}.changes"
)  # fmt: skip
DEEPER = (
    "hooks", "batches", "bisections", "sums", "objects/ab", "hooks/queue", "stats/ab",
    "tmp/workloads", "workloads", "workloads/fuzz",
)  # fmt: skip
"""Folders that Perun makes when it needs them."""
READING = (("status",), ("log", "--short"), ("check", "head"), ("fsck",), ("hooks", "status"))


@pytest.fixture
def limited(perun, command):
    """Run the command with little memory."""
    return lambda *arguments: perun(*arguments, check=False, program=["prlimit", f"--as={LIMIT}", *command])


@pytest.fixture
def patient(perun):
    """Run the command; it is killed, and the test fails, where it waits for ever."""
    return lambda *arguments: perun(*arguments, check=False)


def make(path, kind):
    path.parent.mkdir(exist_ok=True, parents=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path) if kind == "pipe" else path.symlink_to(kind)


@pytest.mark.parametrize("kind", ["pipe", "/dev/zero"])
def test_nothing_waits_for_a_pipe_or_reads_a_device(limited, patient, project, write_profile, kind, perun):
    run = patient if kind == "pipe" else limited
    write_profile()
    perun("add", "0@p")
    index = f"objects/{project.head[:2]}/{project.head[2:]}"
    for place in PLACES[kind != "pipe" :: 2]:
        path = project.path / ".perun" / place.format(index=index)
        kept = path.read_bytes() if path.is_file() else None
        make(path, kind)
        for arguments in READING[:2] if place in ("jobs/.index", "local.yml") else READING[:1]:
            assert run(*arguments).code in (0, 3, 5, 6), place
        path.unlink()
        if kept is not None:
            path.write_bytes(kept)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pipe", "/dev/zero"])
@pytest.mark.parametrize("place", PLACES)
def test_no_command_waits_for_them(limited, project, write_profile, kind, perun, place):
    write_profile()
    perun("add", "0@p")
    index = f"objects/{project.head[:2]}/{project.head[2:]}"
    make(project.path / ".perun" / place.format(index=index), kind)
    for arguments in READING:
        assert limited(*arguments).code in (0, 3, 5, 6, 10), arguments


def test_a_cache_in_the_repository_is_not_read(perun, project, traps):
    local = project.path / ".perun" / "local.yml"
    local.write_text("vcs: {type: git, url: ..}\ncmds: ['true']\n")
    evil = {"vcs": {"type": "git", "url": ".."}, "cmds": [traps("cmd")], "collectors": [{"name": "time"}]}
    forged = {"format": 1, "files": {str(local): {"text": local.read_text(), "values": evil, "warnings": []}}}
    (project.path / ".perun" / "cache").mkdir(exist_ok=True)
    (project.path / ".perun" / "cache" / "config.json").write_text(json.dumps(forged))
    assert perun("config", "get", "cmds").out == 'cmds: ["true"]\n'
    assert perun("run", "matrix", check=False).code == 5 and traps.sprung == []


def test_the_cache_lies_among_those_of_the_user_and_is_private(perun, project, isolated_environment):
    perun("config", "set", "cmds", "./x")
    assert not (project.path / ".perun" / "cache" / "config.json").exists()
    (cache,) = (isolated_environment / ".cache" / "perun" / "config").glob("*.json")
    assert cache.stat().st_mode & 0o777 == 0o600 and cache.parent.stat().st_mode & 0o777 == 0o700


def test_a_configuration_may_be_a_link_inside_of_the_project_alone(perun, project, tmp_path):
    local = project.path / ".perun" / "local.yml"
    (project.path / "perun.yml").write_text("general: {paging: never}\n")
    (tmp_path / "secret.yml").write_text("general: {paging: always}\n")
    local.unlink()
    local.symlink_to("../perun.yml")
    assert perun("config", "get", "general.paging").out == "general.paging: never\n"
    local.unlink()
    local.symlink_to(tmp_path / "secret.yml")
    failed = perun("config", "get", "general.paging", check=False)
    assert failed.code == 5 and "outside of its project" in failed.err


@pytest.mark.parametrize("content", [b"", b"pidx", b"pidx" + b"\xff" * 4096, b"\0" * 4096, b"[" * 99_999])
def test_a_forged_cache_of_pending_profiles_changes_nothing(perun, project, write_profile, content):
    write_profile("a.perf")
    (project.path / ".perun" / "jobs" / ".index").write_bytes(content)
    (found,) = perun("status", "--json").json["pending"]
    assert (found["name"], found["cmd"]) == ("a.perf", "./app")


def test_a_large_sparse_cache_of_pending_profiles_is_not_read(limited, project, write_profile):
    write_profile("a.perf")
    with (project.path / ".perun" / "jobs" / ".index").open("wb") as file:
        file.truncate(1 << 40)
    assert "a.perf" in limited("status", "--json").out


@pytest.mark.parametrize("folder", [*FOLDERS, *DEEPER])
def test_folders_that_are_links_are_found(tmp_path, folder):
    elsewhere, perun = tmp_path / "elsewhere", tmp_path / ".perun"
    elsewhere.mkdir()
    (perun / folder).parent.mkdir(parents=True)
    (perun / "plugins").symlink_to(elsewhere)
    (perun / "local.yml").symlink_to(tmp_path / "file")
    assert links_of(perun) == []
    (perun / folder).symlink_to(elsewhere)
    assert links_of(perun) == [perun / folder]


@pytest.mark.parametrize("folder", [".", "jobs", pytest.param("objects/ab", marks=pytest.mark.slow)])
def test_a_folder_that_is_a_link_is_not_used_without_trust(perun, clone, tmp_path, traps, folder):
    """Else a clone would have Perun write and delete in other folders of the user."""
    place = clone.path / ".perun" / folder
    elsewhere = tmp_path / "elsewhere"
    if place.is_dir():
        place.rename(elsewhere)
    elsewhere.mkdir(exist_ok=True)
    (clone.path / ".perun" / folder).symlink_to(elsewhere)
    before = sorted((path, path.lstat().st_mtime_ns) for path in elsewhere.rglob("*"))
    for arguments in (("add", "0@p"), ("config", "set", "general.paging", "never"), ("init",)):
        failed = perun(*arguments, check=False)
        assert failed.code == 11, (arguments, failed)
        assert f"{place} is a link to {elsewhere}" in failed.err and f"perun trust {clone.path}" in failed.err
    assert sorted((path, path.lstat().st_mtime_ns) for path in elsewhere.rglob("*")) == before
    assert f" -> {elsewhere}" in perun("trust", "--show").out
    if folder != ".":  # `vcs.url` is relative to `.perun`
        perun("status", env={"PERUN_TRUST": "1"})


def test_a_link_that_comes_later_is_asked_about(perun, clone, tmp_path):
    perun("trust")
    perun("status")
    clone.path.joinpath(".perun", "batches").symlink_to(tmp_path)
    failed = perun("status", check=False)
    assert failed.code == 11 and "batches is a link" in failed.err
    perun("trust")
    assert perun("status").code == 0


@pytest.mark.parametrize("place", [".lock", "in-place.lock"])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_lock_that_is_a_link_overwrites_nothing(perun, clone, tmp_path, place, kind):
    victim = tmp_path / "victim"
    victim.write_text("precious\n")
    (clone.path / ".perun" / place).unlink(missing_ok=True)
    make(clone.path / ".perun" / place, victim if kind == "link" else "pipe")
    (clone.path / ".perun" / "in-place.json").write_text(
        f'{{"saved": false, "state": "main", "stash": "", "folder": "{clone.path}"}}'
    )
    arguments = ("add", "0@p") if place == ".lock" else ("recover",)
    failed = perun(*arguments, env={"PERUN_TRUST": "1"}, check=False)
    assert failed.code == 3 and f"{place} is a link or no regular file" in failed.err
    assert victim.read_text() == "precious\n"


def test_no_log_is_written_through_a_link(perun, project, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious\n")
    perun("config", "set", "execute.pre_run", "[echo built]")
    logs = project.path / ".perun" / "logs"
    (logs / f"{project.head}-pre-run.log").symlink_to(victim)
    failed = perun("collect", "-c", "true", "time", check=False)
    assert "it is a symbolic link" in failed.err.lower() and f"{project.head}-pre-run.log" in failed.err
    assert victim.read_text() == "precious\n"


def test_statistics_are_not_deleted_through_a_link(perun, project, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_text("precious\n")
    stats = project.path / ".perun" / "stats" / project.head[:2]
    stats.mkdir(parents=True)
    (stats / project.head[2:]).symlink_to(tmp_path / "elsewhere")
    for arguments in (("minor", project.head), ("all",)):
        failed = perun("stats", "delete", *arguments, check=False)
        assert "is a link, and no folder of statistics" in failed.err or failed.code == 0, failed
    assert (tmp_path / "elsewhere" / "file").read_text() == "precious\n"
