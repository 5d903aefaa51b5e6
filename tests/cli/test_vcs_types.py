"""Folders without git: the verbs on tagit and svs, `perun tag`, and version control of a plugin."""

import json
from pathlib import Path
from textwrap import dedent

import pytest

RUN = ("collect", "-c", "./app", "time", "--repeat", "2", "--warmup", "0")
TOLD = ("collect", "-c", "./app", "regex", "--metric", "run", "took (?P<value>[0-9.]+) s", "--repeat", "3")
"""What the program prints is measured, so that nothing depends on how busy the machine is."""


@pytest.fixture
def folder(tmp_path, perun):
    """A folder with a program, which is the current directory."""
    program(tmp_path, "exit 0")
    return tmp_path


def program(folder: Path, line: str) -> None:
    (folder / "app").write_text(f"#!/bin/sh\n{line}\n")
    (folder / "app").chmod(0o755)


def test_the_life_of_a_folder_under_tagit(perun, folder):
    program(folder, "echo it took 0.01 s")
    perun("init", "--vcs-type", "tagit", out=f"Initialized tagit repository in {folder}")
    assert "none yet" in perun("status").out
    perun("log", code=4, err="perun tag NAME")

    assert perun("tag", "v1", "-m", "The first").lines[0].endswith(" v1")
    perun(*TOLD)
    perun("add", "0@p")
    program(folder, "echo it took 0.2 s")
    perun("tag", "v2")
    perun(*TOLD)
    assert "1 pending profile" in perun("status").out
    perun("add", "0@p")

    log = json.loads(perun("log", "--json").out)["versions"]
    assert [one["desc"].partition("\n")[0] for one in log] == ["v2", "v1"]
    found = perun("check", "head", check=False)
    assert "Degradation" in found.out, found
    assert perun("show", "0@i", "raw").out
    assert perun("add", "--minor", "v1", "0@p", check=False).code != 0
    assert perun("fsck").code == 0


def test_other_snapshots_are_measured_beside_the_folder(perun, folder):
    perun("init", "--vcs-type", "tagit")
    (folder / "name").write_text("one")
    program(folder, 'cat name > "$PERUN_TEST_SAW"')
    perun("tag", "one")
    (folder / "name").write_text("two")
    perun("tag", "two")
    (folder / "name").write_text("mine")
    saw = folder.parent / f"{folder.name}-saw"
    for options in ((), ("--in-place",)):
        perun("collect", "-m", "one", *options, *RUN[1:], env={"PERUN_TEST_SAW": str(saw)})
        assert saw.read_text() == "one"
        assert (folder / "name").read_text() == "mine"
    assert "main" in perun("status").lines[0]
    assert list((folder / ".perun" / "tmp").glob("worktree*")) == []


def test_going_back_refuses_to_lose_anything(perun, folder):
    perun("init", "--vcs-type", "tagit")
    (folder / "same").write_text("same")
    perun("tag", "v1")
    program(folder, "exit 1")
    perun("tag", "v2")
    program(folder, "exit 2")
    assert "app" in perun("tag", "--restore", "v1", code=4).err.splitlines()[0]
    assert "exit 2" in (folder / "app").read_text()
    program(folder, "exit 1")
    (folder / "same").write_text("changed")
    done = perun("tag", "--restore", "v1")
    assert "exit 0" in (folder / "app").read_text()
    assert (folder / "same").read_text() == "changed"
    assert "kept the changes that are in no snapshot" in done.err
    assert "detached" in perun("status").lines[0]
    perun("tag", "v3", code=4, err="--restore 'v2'")
    perun("tag", "--restore", "v1", "-m", "text", code=2)


def test_the_life_of_a_folder_under_svs(perun, folder):
    perun("init", "--vcs-type", "svs", "--vcs-param", "description", "An old folder")
    assert "An old folder" in perun("log").out
    perun(*RUN)
    perun("add", "0@p")
    program(folder, "sleep 0.05")
    perun("collect", "-ot", "second", *RUN[1:])
    assert "1 registered profile" in perun("status").out
    assert "1 pending profile" in perun("status").out
    perun("add", "0@p")
    assert len(perun("log", "--short").lines) == 2
    checked = perun("check", "head")
    assert "svs keeps one version only" in checked.out + checked.err
    assert perun("check", "profiles", "0@i", "1@i", check=False).code in (0, 1)
    perun("tag", "v1", code=4, err="tagit")
    perun("collect", "-m", "v1", *RUN[1:], code=4, err="no version 'v1'")


def test_a_folder_that_an_older_release_measured(perun, folder):
    """Without `.svs`, and with profiles of the version HEAD."""
    perun("init", "--vcs-type", "svs")
    perun(*RUN)
    perun("add", "0@p")
    assert not (folder / ".svs").exists()
    objects = folder / ".perun" / "objects"
    assert (objects / "HE" / "AD").read_bytes()[:4] == b"pidx"
    (version,) = perun("log", "--json").json["versions"]
    assert (version["checksum"], version["profiles"]) == ("HEAD", {"time": 1})
    assert perun("status", "--json").json["registered"][0]["cmd"] == "./app"
    assert perun("fsck").code == 0
    perun("rm", "0@i")
    assert perun("log", "--json").json["versions"][0]["profiles"] == {}


@pytest.mark.parametrize("system", ["tagit", "svs"])
def test_the_matrix(perun, folder, system):
    perun("init", "--vcs-type", system)
    if system == "tagit":
        perun("tag", "v1")
    perun("config", "set", "cmds", '["./app"]')
    perun("config", "set", "collectors", '[{"name": "time", "params": {"repeat": 2, "warmup": 0}}]')
    perun("run", "matrix")
    assert "1 pending profile" in perun("status").out


def test_git_has_commands_of_its_own(perun, project):
    perun("tag", "v1", code=4, err="git")
    perun("tag", "-r", "HEAD", code=4)
    assert project.git("status", "--porcelain") == ""


def test_init_again_keeps_the_system(perun, folder):
    perun("init", "--vcs-type", "svs")
    assert "Reinitialized" in perun("init").out
    assert not (folder / ".git").exists()
    perun("init", "--vcs-type", "git", code=4, err="perun config --local set vcs.type git")
    perun("config", "--local", "set", "vcs.type", "git")
    perun("init", "--vcs-type", "git")
    assert (folder / ".git").exists()


def test_parameters_that_it_has_not(perun, folder):
    perun("init", "--vcs-type", "tagit", "--vcs-flag", "bare", code=4, err="no parameter 'bare'")


def test_init_sees_the_plugins_of_the_folder(perun, folder):
    plugins = folder / ".perun" / "plugins" / "vcs"
    plugins.mkdir(parents=True)
    (plugins / "ours.py").write_text(
        dedent(
            """
            from perun.vcs.svs import Svs


            class Ours(Svs):
                type = "ours"


            PLUGIN = Ours
            """
        )
    )
    perun("init", "--vcs-type", "ours", code=11, err=str(plugins / "ours"))
    perun("trust", str(folder))
    assert "Initialized empty Perun repository" in perun("init", "--vcs-type", "ours").out
    assert "main" in perun("status").lines[0]


def test_completion_of_snapshots(perun, folder):
    perun("init", "--vcs-type", "tagit")
    perun("tag", "v1")
    perun("tag", "w1")
    words = {"_PERUN_COMPLETE": "bash_complete", "COMP_WORDS": "perun tag -r v", "COMP_CWORD": "3"}
    assert perun(env=words).out.split(",")[1].strip() == "v1"


def test_a_killed_run_in_place_is_mended(perun, folder):
    perun("init", "--vcs-type", "tagit")
    (folder / "name").write_text("one")
    program(folder, "kill -9 $PPID")
    perun("tag", "one")
    (folder / "name").write_text("two")
    perun("tag", "two")
    (folder / "name").write_text("mine")
    perun("collect", "-m", "one", "--in-place", *RUN[1:], code=-9)
    assert (folder / "name").read_text() == "one"
    assert "perun recover" in perun("tag", "three", check=False).err
    perun("recover")
    assert (folder / "name").read_text() == "mine"
    assert "major version main" in perun("status").lines[0]
    perun("tag", "three")
