"""`perun init` (manual 3.2.1): what it makes, keeps, and refuses."""

import os
from pathlib import Path

import pytest


def test_it_makes_the_folders_of_the_manual_and_a_git_repository(perun, tmp_path):
    done = perun("init")
    assert f"Initialized empty Perun repository in {tmp_path}/.perun" in done.out
    assert "Initialized git repository" in done.out
    for name in ("jobs", "objects", "cache", "logs", "stats", "tmp"):
        assert (tmp_path / ".perun" / name).is_dir()
    assert "type: git" in (tmp_path / ".perun" / "local.yml").read_text()
    assert (tmp_path / ".git").is_dir()
    assert "perun run matrix" in done.err  # the next step
    assert "no pending profiles" in perun("status").out


def test_in_a_git_repository_that_is_left_alone(perun, git_repository):
    repository = git_repository(commits=2)
    before = repository.git("log", "--format=%H"), (repository.path / ".git" / "config").read_text()
    assert "git repository" not in perun("init", cwd=repository.path).out
    assert (repository.git("log", "--format=%H"), (repository.path / ".git" / "config").read_text()) == before


def test_git_does_not_see_the_perun_folder(project):
    assert project.git("status", "--porcelain") == ""
    assert not (project.path / ".gitignore").exists()


def test_a_second_time_keeps_all_that_is_there(perun, project, write_profile):
    write_profile()
    perun("config", "set", "cmds", "./app")
    before = {path: path.read_bytes() for path in (project.path / ".perun").rglob("*") if path.is_file()}
    done = perun("init")
    assert done.out.startswith("Reinitialized existing Perun repository")
    assert done.err == ""
    changed = {path.name for path, content in before.items() if path.read_bytes() != content}
    assert changed <= {".lock"}


def test_missing_folders_are_made_again(perun, project):
    (project.path / ".perun" / "stats").rmdir()
    perun("init")
    assert (project.path / ".perun" / "stats").is_dir()


def test_a_path_is_made(perun, tmp_path):
    perun("init", "sub/project")
    assert (tmp_path / "sub" / "project" / ".perun" / "local.yml").is_file()
    assert (tmp_path / "sub" / "project" / ".git").is_dir()
    assert not (tmp_path / ".perun").exists()


def test_options_of_git_init(perun, tmp_path, git_repository):
    perun(
        "init", "--vcs-param", "initial-branch", "trunk", "--vcs-param", "separate-git-dir", tmp_path / "away"
    )
    assert (tmp_path / "away" / "HEAD").read_text().strip() == "ref: refs/heads/trunk"
    perun("init", "--vcs-flag", "bare", "bare")
    assert (tmp_path / "bare" / "HEAD").is_file()


def test_a_wrong_option_of_git_init(perun, tmp_path):
    failed = perun("init", "--vcs-param", "nope", "3", code=4, err="unknown option `nope=3'")
    assert len(failed.err.splitlines()) == 2  # not the whole help of git
    assert not (tmp_path / ".perun").exists()


def test_the_wrapped_repository_may_lie_elsewhere(perun, git_repository, tmp_path):
    wrapped = git_repository("wrapped", commits=1)
    perun("init", "--vcs-path", "wrapped", "perun-side")
    assert f"url: {wrapped.path}" in (tmp_path / "perun-side" / ".perun" / "local.yml").read_text()
    assert not (tmp_path / "perun-side" / ".git").exists()
    assert wrapped.head in perun("status", cwd=tmp_path / "perun-side").out


@pytest.mark.parametrize(
    ("template", "expected"),
    [("user", "name: time"), *((one, "method: hodges_lehmann_ratio") for one in ("developer", "master"))],
)
def test_templates(perun, tmp_path, template, expected):
    perun("init", "-t", template)
    lines = (tmp_path / ".perun" / "local.yml").read_text().splitlines()
    items = [line.strip().removeprefix("- ") for line in lines if line.lstrip().startswith("- ")]
    assert items[0] == expected


def test_the_user_template_finds_commands_and_workloads(perun, tmp_path):
    program = tmp_path / "build" / "app"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "workloads").mkdir()
    (tmp_path / "workloads" / "big.txt").touch()
    perun("init", "-t", "user")
    assert perun("config", "get", "cmds").out == 'cmds: ["./build/app"]\n'
    assert perun("config", "get", "workloads").out == 'workloads: ["./workloads/big.txt"]\n'


def test_an_unknown_template_or_system_makes_nothing(perun, tmp_path):
    perun("init", "-t", "usr", code=2, err="user, developer, master")
    failed = perun("init", "--vcs-type", "gti", check=False)
    assert (failed.code, "git" in failed.err.splitlines()[1]) == (9, True)
    assert list(tmp_path.iterdir()) == []


def test_configure_opens_the_editor(perun, tmp_path):
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho "cmds: [./app]" >> "$1"\n')
    editor.chmod(0o755)
    perun("init", "-c", "here", env={"EDITOR": str(editor)})
    assert perun("config", "get", "cmds", cwd=tmp_path / "here").out == 'cmds: ["./app"]\n'


@pytest.mark.parametrize("path", ["file", "file/below"])
def test_where_a_file_is_in_the_way(perun, tmp_path, path):
    (tmp_path / "file").touch()
    failed = perun("init", path, check=False)
    assert failed.code in (2, 3)
    assert "file" in failed.err
    assert "bug" not in failed.err


def test_where_a_file_is_called_perun(perun, tmp_path):
    Path(tmp_path / ".perun").touch()
    perun("init", code=3, err=f"cannot create a Perun repository in {tmp_path}")


def test_a_folder_with_an_odd_name(perun, tmp_path):
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff \x1b[31m \n"))
    assert perun("init", folder).lines[0].endswith("/\\xff \\x1b[31m \\n/.perun")
    assert "no pending profiles" in perun("status", cwd=folder).out
    assert perun("config", "get", "vcs.type", "--json", cwd=folder).json["value"] == "git"


def test_nested_instances_are_of_their_own(perun, project, write_profile):
    write_profile()
    perun("init", "inner")
    assert "1 pending profile" in perun("status").out
    assert "no pending profiles" in perun("status", cwd=project.path / "inner").out
