"""A clone whose `.perun` is hostile: nothing of it runs before the user says that he trusts it."""

import os
import subprocess

import pytest
from conftest_of_cli import Outcome

RUNNING = (
    (("run", "matrix"), "pre_run"),
    (("run", "matrix", "--dry-run"), "generator"),
    (("run", "--in-place", "job", "-c", "time", "-b", "true"), "pre_run"),
    (("collect", "-c", "true", "time"), "pre_run"),
    (("check", "head"), "cmd"),
    (("check", "all"), "cmd"),
    (("config", "edit"), "editor"),
    (("recover",), ""),
)
"""Commands that would run something of the repository, and what that is."""


def test_what_would_run_something_names_it_and_runs_nothing(perun, clone, traps):
    (clone.path / ".perun" / "in-place.json").write_text(
        f'{{"saved": false, "state": "main", "stash": "", "folder": "{clone.path}"}}'
    )
    for arguments, name in RUNNING:
        failed = perun(*arguments, check=False)
        assert failed.code == 11, (arguments, failed)
        assert f"trap.sh {name}" in failed.err, (arguments, failed.err)
        assert f"perun trust {clone.path}" in failed.err and "PERUN_TRUST=1" in failed.err
    assert traps.sprung == []


def test_plugins_are_named_but_not_loaded(perun, clone, traps):
    rules = "[{method: evil}]"
    for arguments in (
        ("show", "0@p", "evil"), ("show", "0@p", "evil", "--help"), ("collect", "-c", "true", "evil"),
        ("postprocessby", "0@p", "evil"),
        ("run", "job", "-c", "evil", "-b", "true"), ("run", "job", "-c", "time", "-p", "evil", "-b", "true"),
        ("fuzz", "-b", "true", "-c", "evil", "-w", "file.txt", "-o", "out"),
        ("config", "set", "collectors", "[evil]"), ("config", "set", "postprocessors", "[evil]"),
        ("config", "set", "degradation.strategies", rules), ("config", "set", "vcs.type", "evil"),
    ):  # fmt: skip
        failed = perun(*arguments, check=False)
        assert failed.code == 11, (arguments, failed.err)
        assert "evil" in failed.err and "perun trust" in failed.err
    assert perun("show", "0@p", "nothing-of-that-name", check=False).code == 2
    assert "evil" not in perun("show", "0@p", "--help").out
    perun("completion", "bash")
    assert traps.sprung == []


def test_hooks_of_git_measure_nothing_and_let_commits_pass(perun, clone, traps):
    installed = perun("hooks", "install")
    assert "perun trust" in installed.err
    done = perun("hooks", "run", "post-commit")
    assert "perun trust" in done.err
    perun("hooks", "work", check=False)
    perun("hooks", "run", "pre-push", input=f"refs/heads/main {clone.head} refs/heads/main {'0' * 40}\n")
    assert traps.sprung == []


def test_typing_something_does_not_trust_the_rest(perun, clone, traps):
    """A harmless setting, `perun init` or a new plugin say nothing of what a stranger wrote."""
    perun("config", "set", "general.paging", "never")
    assert "perun trust" in perun("init").err
    perun("utils", "create", "check", "mine", "--no-edit")
    perun("hooks", "install")
    assert perun("run", "matrix", check=False).code == 11 and traps.sprung == []


def test_trust_is_asked_for_once_on_a_terminal(perun, terminal, clone, traps):
    refused = terminal("check", "head", keys="n\n")
    assert refused.code == 11 and "trap.sh cmd" in refused.out and "Do you trust it? [y/N]" in refused.out
    assert traps.sprung == []
    accepted = terminal("run", "matrix", "--dry-run", keys="y\n")
    assert "Do you trust it?" in accepted.out and "generator" in traps.sprung
    assert "Do you trust" not in terminal("run", "matrix", "--dry-run").out
    assert perun("trust", "--show", "--json").json["because"] == "record"


def test_trusted_it_runs(perun, clone, traps):
    assert "pre_run" in perun("trust").out
    perun("run", "matrix", check=False)
    perun("collect", "-c", "true", "time")
    assert traps.sprung == ["generator", "pre_run"]


def test_the_environment_trusts_in_continuous_integration(perun, clone, traps):
    for value in ("", "0", "no", ".", "/elsewhere"):
        failed = perun("run", "matrix", "--dry-run", env={"PERUN_TRUST": value}, check=False)
        assert failed.code == 11, value
    assert traps.sprung == []
    for value in ("1", "yes", f"/elsewhere:{clone.path}"):
        perun("run", "matrix", "--dry-run", env={"PERUN_TRUST": value}, check=False)
        assert "generator" in traps.sprung, value
        for path in traps.folder.iterdir():
            path.unlink()
    assert not perun("trust", "--show", "--json").json["trusted"]


def evil_bare(clone, traps):
    """A partial clone, committed as plain files, that lacks its only commit."""
    folder = clone.path / "evil.git"
    subprocess.run(["git", "init", "--quiet", "--bare", folder], check=True)
    for name, value in {
        "core.repositoryformatversion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.url": str(clone.path),
        "remote.origin.promisor": "true",
        "remote.origin.uploadpack": f"{traps('uploadpack')};false",
        "core.fsmonitor": traps("fsmonitor"),
    }.items():
        subprocess.run(["git", "-C", folder, "config", name, value], check=True)
    (folder / "refs" / "heads" / "main").write_text("12" * 20 + "\n")
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    return folder


def test_a_bare_repository_inside_the_working_tree_is_not_used(perun, clone, traps):
    evil_bare(clone, traps)
    commands = (
        ("status",), ("log",), ("check", "head"), ("show", "0@i", "raw"), ("add", "0@p"), ("rm", "0@i"),
    )  # fmt: skip
    tried = [("../evil.git", arguments) for arguments in commands] + [("../evil.git/refs", ("status",))]
    for url, arguments in tried:
        (clone.path / ".perun" / "local.yml").write_text(f"vcs: {{type: git, url: {url}}}\n")
        failed = perun(*arguments, check=False)
        assert failed.code == 11, (arguments, failed)
        assert "vcs.url" in failed.err and "evil.git" in failed.err
    assert traps.sprung == []


def test_missing_objects_are_not_fetched_even_where_the_repository_is_trusted(perun, clone, traps):
    evil_bare(clone, traps)
    (clone.path / ".perun" / "local.yml").write_text("vcs: {type: git, url: ../evil.git}\n")
    for arguments in (("status",), ("log",), ("check", "head")):
        failed = perun(*arguments, env={"PERUN_TRUST": "1"}, check=False)
        assert failed.code == 4, failed
    assert traps.sprung == []


def test_a_bare_repository_that_one_stands_in_is_not_used(perun, clone, traps):
    folder = evil_bare(clone, traps)
    (folder / ".perun").mkdir()
    (folder / ".perun" / "local.yml").write_text("vcs: {type: git, url: ..}\n")
    for arguments in (("status",), ("log",)):
        assert perun(*arguments, cwd=folder, check=False).code == 11
    for arguments in (("status",), ("config", "get", "cmds"), ("init",)):
        perun(*arguments, cwd=folder / "refs", check=False)
    assert traps.sprung == []


def hostile_git_configuration(repository, traps):
    """Let everything that git may run on behalf of a repository be a trap; returns what they are called."""
    keys = [
        "core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.askPass", "core.gitProxy",
        "core.alternateRefsCommand", "sequence.editor", "credential.helper", "diff.external", "gpg.program",
        "gpg.openpgp.program", "gpg.x509.program", "gpg.ssh.program", "gpg.ssh.defaultKeyCommand",
        "filter.trap.clean", "filter.trap.smudge", "filter.trap.process", "diff.trap.textconv",
        "diff.trap.command", "merge.trap.driver", "pager.log", "pager.status", "pager.config",
        "remote.origin.uploadpack", "remote.origin.vcs", "submodule.sub.update", "alias.log",
        "remote.origin.receivepack", "http.proxy", "remote.origin.proxy", "credential.https://host.helper",
        "uploadpack.packObjectsHook", "trace2.eventTarget", "interactive.diffFilter", "difftool.trap.cmd",
        "mergetool.trap.cmd", "browser.trap.cmd", "man.trap.cmd", "trailer.trap.command",
    ]  # fmt: skip
    inner = repository.path / ".git" / "included"
    for key in keys:
        mark = "!" if key in ("submodule.sub.update", "alias.log", "credential.helper") else ""
        repository.git("config", "--file", str(inner), key, mark + traps(key))
    repository.git("config", "log.showSignature", "true")
    repository.git("config", f"includeIf.gitdir:{repository.path}/.path", "included")
    hooks = repository.path / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "pre-commit", "pre-auto-gc"):
        (hooks / hook).write_text(f"#!/bin/sh\n{traps(hook)}\n")
        (hooks / hook).chmod(0o755)
    (repository.path / ".git" / "info" / "attributes").write_text("* filter=trap diff=trap merge=trap\n")
    return keys


def test_what_reads_runs_nothing_and_works(perun, clone, traps, reading):
    hostile_git_configuration(clone, traps)
    subprocess.run(["git", "status"], cwd=clone.path, env=os.environ, capture_output=True, check=False)
    assert traps.sprung, "git itself runs some of it, or this test would show nothing"
    for path in traps.folder.iterdir():
        path.unlink()
    os.utime(clone.path / "file.txt")  # git would have to look at it again
    for arguments in reading:
        assert perun(*arguments).code == 0, arguments
    assert traps.sprung == []


def test_where_the_repository_is_trusted_only_its_filters_run(perun, clone, traps):
    (clone.path / ".perun" / "local.yml").write_text(
        '{cmds: ["true"], collectors: [{name: time, params: {warmup: 0, repeat: 1}}]}'
    )
    hostile_git_configuration(clone, traps)
    perun("run", "--in-a-copy", "matrix", env={"PERUN_TRUST": "1"}, check=False)
    assert traps.sprung
    assert all(name.startswith("filter.") for name in traps.sprung), traps.sprung


TRANSPORTS = {
    "uploadpack": {"remote.origin.url": "{folder}", "remote.origin.uploadpack": "{trap}"},
    "ssh": {"remote.origin.url": "ssh://host/team", "core.sshCommand": "{trap}"},
    "proxy": {"remote.origin.url": "git://host/team", "core.gitProxy": "{script}"},
    "ext": {"remote.origin.url": "ext::{trap}", "protocol.ext.allow": "always"},
    "insteadOf": {
        "remote.origin.url": "https://host/team",
        "url.ext::{trap} .insteadOf": "https://",
        "protocol.ext.allow": "always",
    },
    "vcs": {"remote.origin.url": "{trap}", "remote.origin.vcs": "ext", "protocol.ext.allow": "always"},
}
"""How git may start a program to get what a partial clone lacks."""


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_partial_clone_fetches_nothing(perun, clone, traps, transport):
    """The clone lacks its newest commit, which every command asks for."""
    known = {"folder": clone.path, "trap": traps(transport), "script": traps.script}
    partial = {
        "core.repositoryformatversion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
    }
    for name, value in (partial | TRANSPORTS[transport]).items():
        clone.git("config", name.format(**known), value.format(**known))
    (clone.path / ".git" / "refs" / "heads" / "main").write_text("12" * 20 + "\n")
    subprocess.run(["git", "log"], cwd=clone.path, env=os.environ, capture_output=True, check=False)
    assert traps.sprung, "git itself starts the program, or this test would show nothing"
    for path in traps.folder.iterdir():
        path.unlink()
    reading = (("status",), ("log",), ("check", "head"), ("show", "0@i", "raw"), ("add", "0@p"), ("init",))
    for arguments in reading:
        perun(*arguments, check=False)
    assert traps.sprung == []


REDIRECTIONS = {
    "core.worktree": "{elsewhere}", "core.bare": "true", "core.excludesFile": "{pipe}",
    "core.attributesFile": "{pipe}", "mailmap.file": "{pipe}", "mailmap.blob": "HEAD:file.txt",
    "blame.ignoreRevsFile": "{pipe}", "diff.orderFile": "{pipe}", "commit.template": "{pipe}",
    "core.hooksPath": "{elsewhere}", "core.notesRef": "refs/heads/main", "notes.displayRef": "refs/heads/*",
    "core.sparseCheckout": "true", "core.useReplaceRefs": "false", "extensions.worktreeConfig": "true",
    "index.sparse": "true", "feature.experimental": "true", "init.templateDir": "{elsewhere}",
    "url.{elsewhere}.insteadOf": "https://", "include.path": "{missing}", "trace2.normalTarget": "{missing}",
}  # fmt: skip
"""What leads git to other places, or lets it leave something out; nobody writes into the pipe."""


def test_no_redirection_changes_an_answer(perun, clone, tmp_path):
    places = {name: tmp_path / name for name in ("elsewhere", "pipe", "missing")}
    places["elsewhere"].mkdir()
    os.mkfifo(places["pipe"])
    reading = (("status", "--json"), ("log",))
    expected = [perun(*arguments) for arguments in reading]
    config = clone.path / ".git" / "config"
    plain = config.read_bytes()
    for name, value in REDIRECTIONS.items():
        clone.git("config", name.format(**places), value.format(**places))
        assert [perun(*arguments) for arguments in reading] == expected, name
        config.write_bytes(plain)
    assert list(places["elsewhere"].iterdir()) == [] and not places["missing"].exists()


@pytest.mark.parametrize("keys", ["y\n", "n\n"])
def test_the_editor_of_a_repository_is_asked_about_too(terminal, clone, traps, keys):
    done: Outcome = terminal("config", "edit", keys=keys)
    assert "trap.sh editor" in done.out
    assert traps.sprung == (["editor"] if keys == "y\n" else [])
