"""The decision of trust: who makes it, where it is kept, and when it no longer holds."""

import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from perun.repository import trust
from perun.repository.init import init
from perun.repository.repository import open_repository


@pytest.fixture
def own(git_repository):
    """A repository that the user has made Perun's himself."""
    repository = git_repository(commits=1)
    init(repository.path, dict(os.environ))
    return repository


def standing(repository, **environ):
    return open_repository(repository.path, {**os.environ, **environ}).trust_state


def write(repository, text="cmds: [./mine]\n"):
    (repository.path / ".perun" / "local.yml").write_text(text)


def decisions():
    return sorted(Path(os.environ["PERUN_CONFIG_DIR"], "trust").glob("*"))


def track(repository):
    repository.git("add", "--force", ".perun")
    repository.commit()


def test_what_one_makes_oneself_is_trusted_however_it_is_edited(own):
    assert standing(own).because == "record"
    write(own, "cmds: [./mine]\nexecute: {pre_run: [make]}\n")
    plugin = own.path / ".perun" / "plugins" / "view" / "mine.py"
    plugin.parent.mkdir(parents=True)
    plugin.write_text("PLUGIN = None\n")
    assert standing(own).because == "record"
    assert [str(one) for one in standing(own).runs] == [
        "execute.pre_run: make", "cmds: ./mine", "plugin: view/mine.py"
    ]  # fmt: skip


def test_the_record_is_private_and_outside_of_the_repository(own):
    (record,) = decisions()
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert stat.S_IMODE(record.parent.stat().st_mode) == 0o700
    noted = json.loads(record.read_text())
    assert (noted["root"], noted["owner"]) == (str(own.path), os.getuid())
    assert not (own.path / record.relative_to(record.parents[2])).exists()


def test_what_a_pull_changes_is_asked_about(own):
    write(own)
    track(own)
    trust.grant(own.path, open_repository(own.path, dict(os.environ)).config, dict(os.environ))
    assert standing(own).because == "record"
    own.commit("formats run nothing", {".perun/local.yml": "cmds: [./mine]\ngeneral: {paging: never}\n"})
    assert standing(own).because == "record"
    own.commit("a pull", {".perun/local.yml": "cmds: [./other]\n"})
    found = standing(own)
    assert not found.decided and found.since


@pytest.mark.parametrize("name", [".hg", ".svn", ".jj"])
def test_so_is_what_another_version_control_may_have_changed(own, name):
    (own.path / name).mkdir()
    write(own)
    assert not standing(own).decided


@pytest.mark.parametrize("file", ["local.yml", "plugins"])
def test_so_is_what_a_link_leads_to(own, file):
    perun = own.path / ".perun"
    (own.path / "tracked").mkdir()
    (own.path / "tracked" / "view.py").write_text("1\n")
    (own.path / "tracked.yml").write_text("cmds: [./mine]\n")
    (perun / file).unlink(missing_ok=True)
    (perun / file).symlink_to("../tracked" + (".yml" if file == "local.yml" else ""))
    assert not standing(own).decided
    trust.grant(own.path, open_repository(own.path, dict(os.environ)).config, dict(os.environ))
    assert standing(own).decided
    (own.path / "tracked" / "view.py").write_text("2\n")
    (own.path / "tracked.yml").write_text("cmds: [./other]\n")
    assert not standing(own).decided


def test_every_file_of_a_plugin_counts(own):
    track(own)
    package = own.path / ".perun" / "plugins" / "view" / "mine"
    (package / "__pycache__").mkdir(parents=True)
    for name in ("__init__.py", "data.txt", "__pycache__/run.cpython-311.pyc"):
        (package / name).write_text("1")
        assert not standing(own).decided
        trust.grant(own.path, open_repository(own.path, dict(os.environ)).config, dict(os.environ))
        (package / name).write_text("2")
        assert not standing(own).decided


def test_a_stranger_s_repository_in_the_same_place_is_not_trusted(own, tmp_path):
    shutil.copytree(own.path / ".perun", tmp_path / "kept")
    shutil.rmtree(own.path / ".perun")
    (own.path / ".perun").mkdir()
    write(own, "cmds: [./evil]\n")
    assert not standing(own).decided
    (own.path / ".perun" / "trust-mark").write_text("0" * 32 + "\n")
    assert not standing(own).decided


def test_a_moved_or_copied_repository_is_not_trusted(own, tmp_path):
    write(own)
    shutil.copytree(own.path, tmp_path / "copy", symlinks=True)
    assert not open_repository(tmp_path / "copy", dict(os.environ)).trust_state.trusted


def test_trust_is_revoked(own):
    assert trust.revoke(own.path, dict(os.environ)) is True
    assert not standing(own).decided
    assert trust.revoke(own.path, dict(os.environ)) is False


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"[" * 9999, b"\xff", b'{"root": 1}', b"x" * (1 << 17)])
def test_a_record_that_cannot_be_read_is_none(own, damage):
    (record,) = decisions()
    record.write_bytes(damage)
    assert not standing(own).decided


def test_the_record_of_another_user_is_none(own):
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    (record,) = decisions()
    os.chown(record, 4321, -1)
    assert not standing(own).decided and standing(own, SUDO_UID="4321").decided


def test_the_setting_of_earlier_releases_trusts_the_whole(own):
    trust.revoke(own.path, dict(os.environ))
    shared = Path(os.environ["PERUN_CONFIG_DIR"], "shared.yml")
    for folder, because in ((".", ""), (own.path.parent, ""), (own.path, "plugins.trusted")):
        shared.write_text(json.dumps({"plugins": {"trusted": [str(folder)]}}))
        assert standing(own).because == because


def test_what_one_types_keeps_the_trust_and_gives_none(perun, own):
    write(own)
    track(own)
    perun("trust", cwd=own.path)
    perun("config", "set", "cmds", "./other", cwd=own.path)
    perun("config", "--edit", cwd=own.path, env={"EDITOR": "sed -i s/other/third/"})
    perun("utils", "create", "check", "mine", "--no-edit", cwd=own.path)
    assert standing(own).because == "record"
    perun("config", "reset", "--yes", cwd=own.path)
    assert standing(own).because == "record"
    perun("trust", "--revoke", cwd=own.path)
    write(own)
    perun("config", "set", "cmds", "./other", cwd=own.path)
    assert not standing(own).decided


def test_the_command_shows_grants_and_revokes(perun, own):
    write(own)
    assert "trusted\n  cmds: ./mine" in perun("trust", "--show", cwd=own.path).out
    assert perun("trust", "--revoke", "--json", cwd=own.path).json == {
        "schema": "perun.trust/1", "root": str(own.path), "trusted": False, "because": None,
        "changed_since": None, "runs": [{"what": "cmds", "text": "./mine"}]
    }  # fmt: skip
    assert perun("trust", own.path).out.endswith(": trusted\n  cmds: ./mine\n")
    assert perun("trust", "--show", "--revoke", cwd=own.path, check=False).code == 2
    assert perun("trust", check=False).code == 3


def test_without_a_home_everything_but_the_record_works(perun, git_repository):
    repository = git_repository(commits=1)
    nowhere = {
        "HOME": "/proc/none", "PERUN_CONFIG_DIR": "/proc/none", "XDG_CACHE_HOME": None,
        "GIT_CONFIG_GLOBAL": "/dev/null",
    }  # fmt: skip
    made = perun("init", cwd=repository.path, env=nowhere)
    assert "PERUN_TRUST=1" in made.err
    perun("status", cwd=repository.path, env=nowhere)
    assert perun("collect", "-c", "true", "time", cwd=repository.path, env=nowhere, check=False).code == 11
    perun("collect", "-c", "true", "time", cwd=repository.path, env={**nowhere, "PERUN_TRUST": "1"})
    perun("add", "0@p", cwd=repository.path, env={**nowhere, "HOME": None})
