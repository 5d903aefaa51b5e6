"""Tagit beyond the contract: what a snapshot holds, and that nothing of the user's is lost."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perun.core.errors import VersionControlError
from perun.plugin.api import SavedState
from perun.vcs.tagit import Tagit, _batches


@pytest.fixture
def tagit(tmp_path: Path) -> Tagit:
    vcs = Tagit(tmp_path / "project", {"USER": "ada", "EMAIL": "ada@example.org"})
    vcs.init({})
    return vcs


def write(vcs: Tagit, **files: str) -> None:
    for name, text in files.items():
        path = vcs.root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def snapshot(vcs: Tagit, name: str, **files: str) -> str:
    write(vcs, **files)
    return vcs.snapshot(name)


def contents(folder: Path) -> dict[str, str]:
    """All files but those of tagit and git; of a link where it points, with `*` where a file may be run."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name.split("/")[0] in (".tagit", ".git") or (path.is_dir() and not path.is_symlink()):
            continue
        text = "-> " + os.readlink(path) if path.is_symlink() else path.read_text()
        found[name] = text + ("*" if not path.is_symlink() and os.access(path, os.X_OK) else "")
    return found


def git(vcs: Tagit, *arguments: str) -> str:
    """What git itself finds in the snapshots."""
    command = ["git", f"--git-dir={vcs.root / '.tagit'}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def files_of(vcs: Tagit, version: str) -> set[str]:
    return set(git(vcs, "ls-tree", "-r", "-z", "--name-only", version).split("\0")[:-1])


def test_links_programs_folders_and_odd_names(tagit: Tagit, tmp_path: Path) -> None:
    write(tagit, a__b__c="deep", plain="1", run="#!/bin/sh\n")
    (tagit.root / "run").chmod(0o755)
    (tagit.root / "link").symlink_to("a/b/c")
    (tagit.root / "broken").symlink_to("/nowhere")
    (tagit.root / "name\n\t é").write_text("odd")
    os.mkfifo(tagit.root / "pipe")  # nothing a snapshot could hold
    first = tagit.snapshot("one")
    before = contents(tagit.root) if (tagit.root / "pipe").unlink() is None else {}

    shutil.rmtree(tagit.root / "a")
    (tagit.root / "run").chmod(0o644)
    (tagit.root / "link").unlink()
    snapshot(tagit, "two", a="a file where a folder was", link__x="a folder where a link was")
    after = contents(tagit.root)

    tagit.checkout(first)
    assert contents(tagit.root) == before
    tagit.checkout("two")
    assert contents(tagit.root) == after
    with tagit.working_copy(tmp_path / "copy") as copy:
        assert contents(copy.switch(first)) == before
        assert contents(copy.switch(tagit.get_minor_head())) == after


def test_bytes_that_are_no_text(tagit: Tagit) -> None:
    (tagit.root / os.fsdecode(b"\xff\xfe")).write_bytes(bytes(range(256)))
    tagit.snapshot("one")
    (tagit.root / os.fsdecode(b"\xff\xfe")).unlink()
    assert tagit.is_dirty()
    tagit.checkout("one")
    assert not (tagit.root / os.fsdecode(b"\xff\xfe")).exists()  # it does not differ, so it is left alone
    saved, state = tagit.save_state()
    assert (tagit.root / os.fsdecode(b"\xff\xfe")).read_bytes() == bytes(range(256))
    tagit.restore_state(saved, state)
    assert not (tagit.root / os.fsdecode(b"\xff\xfe")).exists()


def test_what_is_ignored(tagit: Tagit) -> None:
    write(
        tagit, keep_c="", x_o="", build__out="", src__build="a file", docs__html__page="", docs__text="",
        perun="x"
    )  # fmt: skip
    write(tagit, **{".perun__local.yml": "", ".git__HEAD": ""})
    (tagit.root / "src" / "__pycache__").mkdir()
    (tagit.root / "src" / "__pycache__" / "x.pyc").touch()
    first = snapshot(
        tagit, "one", **{".tagitignore": "# built\n*_o\nbuild/\ndocs/html\n\n", "# built": "no comment"}
    )
    assert files_of(tagit, first) == {".tagitignore", "# built", "keep_c", "src/build", "docs/text", "perun"}
    write(tagit, **{".tagitignore": "a\n!b\n"})
    with pytest.raises(VersionControlError, match=r"\.tagitignore, line 2"):
        tagit.snapshot("two")


@pytest.mark.parametrize("name", ["", "HEAD", "main", "-x", "a~1", "a^", " a", "a\n", "0" * 64, "@"])
def test_names_that_cannot_be(tagit: Tagit, name: str) -> None:
    write(tagit, a="1")
    with pytest.raises(VersionControlError, match="cannot be the name"):
        tagit.snapshot(name)
    assert list(tagit.walk_major_versions()) == []


def test_a_name_is_given_once(tagit: Tagit) -> None:
    snapshot(tagit, "one", a="1")
    with pytest.raises(VersionControlError, match="already"):
        tagit.snapshot("one")


def test_spellings(tagit: Tagit) -> None:
    made = []
    for name in ("v1", "v2", "v 3"):
        write(tagit, a=name)
        made.append(tagit.snapshot(name, f"About {name}\n"))
    for spelling, number in [
        ("HEAD", 2), ("@", 2), ("main", 2), ("v 3", 2), ("HEAD~1", 1), ("HEAD^", 1), ("v 3~2", 0),
        ("HEAD^^", 0), ("v2^", 0), (made[0][:10], 0), ("HEAD~0", 2),
    ]:  # fmt: skip
        assert tagit.massage_parameter(spelling) == made[number], spelling
    for spelling in ("v1^", "HEAD~3", "v", "~1", "HEAD:a", made[0][:3], made[0].upper()):
        with pytest.raises(VersionControlError):
            tagit.massage_parameter(spelling)
    assert tagit.get_minor_version_info("v 3").desc == "v 3\n\nAbout v 3"


def test_history_stays_linear(tagit: Tagit) -> None:
    snapshot(tagit, "one", a="1")
    snapshot(tagit, "two", a="2")
    tagit.checkout("one")
    write(tagit, a="3")
    with pytest.raises(VersionControlError, match="linear") as caught:
        tagit.snapshot("three")
    assert "--restore 'two'" in caught.value.hint


def test_changes_to_other_files_are_carried_along(tagit: Tagit) -> None:
    snapshot(tagit, "one", a="1", same="same")
    snapshot(tagit, "two", a="2")
    write(tagit, same="changed", new="mine")
    tagit.checkout("one")
    assert contents(tagit.root) == {"a": "1", "same": "changed", "new": "mine"}


def test_nothing_is_written_through_a_link(tagit: Tagit, tmp_path: Path) -> None:
    snapshot(tagit, "one", folder__a="1")
    snapshot(tagit, "two", folder__a="2")
    shutil.rmtree(tagit.root / "folder")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a").write_text("theirs")
    (tagit.root / "folder").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(VersionControlError, match="folder"):
        tagit.checkout("one")
    assert (tmp_path / "elsewhere" / "a").read_text() == "theirs"


def test_a_folder_with_files_of_the_users_is_in_the_way(tagit: Tagit) -> None:
    snapshot(tagit, "one", a="a file")
    (tagit.root / "a").unlink()
    tagit.snapshot("two")
    write(tagit, a__mine="mine")
    with pytest.raises(VersionControlError, match=r"no version holds: a$"):
        tagit.checkout("one")
    (tagit.root / "a" / "mine").unlink()
    tagit.checkout("one")
    assert contents(tagit.root) == {"a": "a file"}


def test_what_a_run_changed_is_kept(tagit: Tagit) -> None:
    snapshot(tagit, "one", a="1", b="1")
    snapshot(tagit, "two", a="2")
    write(tagit, a="mine")
    saved = tagit.prepare_save()
    tagit.finish_save(saved)
    tagit.checkout("one")
    write(tagit, a="of the run", b="of the run")
    tagit.resume(saved)
    assert contents(tagit.root) == {"a": "mine", "b": "1"}
    assert git(tagit, "stash", "list").count("\n") == 1
    assert git(tagit, "show", "stash@{0}:a", "stash@{0}:b") == "of the runof the run"
    tagit.resume(saved)  # once more, as `perun recover` of a run that was killed just then does
    assert contents(tagit.root) == {"a": "mine", "b": "1"}


def test_restoring_what_is_not_there_any_more(tagit: Tagit) -> None:
    head = snapshot(tagit, "one", a="1")
    snapshot(tagit, "two", a="2")
    with pytest.raises(VersionControlError, match="in no entry"):
        tagit.resume(SavedState(True, head, "no-such"))


def test_damaged_snapshots(tagit: Tagit) -> None:
    snapshot(tagit, "one", a="1")
    snapshot(tagit, "two", a="2")
    for path in (tagit.root / ".tagit" / "objects").glob("??/*"):
        if path.parent.name + path.name == git(tagit, "rev-parse", "main~1:a").strip():
            path.chmod(0o600)
            path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(VersionControlError):
        tagit.checkout("one")
    assert (git(tagit, "show", "main:a"), tagit.get_head_major_version()) == ("2", "main")
    (tagit.root / ".tagit" / "HEAD").write_text("nonsense\n")
    with pytest.raises(VersionControlError, match="damaged"):
        Tagit(tagit.root, {}).get_minor_head()


def test_a_folder_from_elsewhere_names_no_programs_to_run(tagit: Tagit, tmp_path: Path) -> None:
    snapshot(tagit, "one", a="1")
    program, mark = tmp_path / "program", tmp_path / "was-run"
    program.write_text(f"#!/bin/sh\ntouch {mark}\ncat\n")
    program.chmod(0o755)
    theirs = tagit.root / ".tagit"
    with (theirs / "config").open("a") as config:
        config.write(f'[core]\nfsmonitor = {program}\n[filter "x"]\nclean = {program}\nsmudge = {program}\n')
    (theirs / "info" / "attributes").write_text("* filter=x\n")
    (theirs / "hooks").mkdir()
    shutil.copy(program, theirs / "hooks" / "post-checkout")
    write(tagit, a="2", **{".gitattributes": "* filter=x text eol=crlf\n"})
    again = Tagit(tagit.root, {})
    assert again.is_dirty()
    again.snapshot("two")
    again.checkout("one")
    assert contents(tagit.root) == {"a": "1"} and not mark.exists()
    (theirs / "commondir").write_text("..\n")
    with pytest.raises(VersionControlError, match="commondir"):
        Tagit(tagit.root, {}).is_dirty()
    (theirs / "commondir").unlink()
    (theirs / "lock").unlink()
    (theirs / "lock").symlink_to(program)
    with pytest.raises(VersionControlError, match="lock"):
        Tagit(tagit.root, {}).snapshot("three")
    assert program.read_text().startswith("#!")


def test_settings_of_the_user_change_no_byte(tagit: Tagit, tmp_path: Path) -> None:
    (tmp_path / ".gitconfig").write_text(
        "[core]\nautocrlf = true\nexcludesFile = ~/ignored\n[commit]\ngpgSign = true\n"
    )
    (tmp_path / "ignored").write_text("*\n")
    vcs = Tagit(tagit.root, {"HOME": str(tmp_path)})
    (vcs.root / "a").write_bytes(b"1\r\n2\n")
    first = snapshot(
        vcs, "one", **{".gitignore": "*", "inner__.git__HEAD": "ref: refs/heads/x\n", "inner__b": "b"}
    )
    assert files_of(vcs, first) == {".gitignore", "a", "inner/b"}
    (vcs.root / "a").write_text("3")
    vcs.snapshot("two")
    vcs.checkout("one")
    assert (vcs.root / "a").read_bytes() == b"1\r\n2\n"


def test_outside_of_any(tmp_path: Path) -> None:
    vcs = Tagit(tmp_path, {})
    calls: list[Callable[[], object]] = [
        vcs.get_minor_head, vcs.get_head_major_version, vcs.is_dirty, lambda: vcs.snapshot("x")
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(VersionControlError) as caught:
            call()
        assert "perun init --vcs-type tagit" in caught.value.hint
    with pytest.raises(VersionControlError, match="no parameter 'bare'"):
        vcs.init({"bare": True})


def test_files_that_cannot_be_read(tagit: Tagit) -> None:
    write(tagit, a="1")
    (tagit.root / "a").chmod(0)
    if os.access(tagit.root / "a", os.R_OK):
        pytest.skip("nothing is unreadable for this user")
    with pytest.raises(VersionControlError, match=r"Permission denied"):
        tagit.snapshot("one")
    assert list(tagit.walk_major_versions()) == []


names = st.sampled_from(["a", "b", "c", "a/x", "a/y", "b/z/w"])
trees = st.dictionaries(names, st.sampled_from(["1", "2", "3"])).filter(
    lambda tree: not any(other.startswith(f"{path}/") for path in tree for other in tree)
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=8)
@given(st.lists(trees, min_size=2, max_size=5), st.data())
def test_any_version_from_any_other(tmp_path_factory: pytest.TempPathFactory, wanted, data) -> None:
    vcs = Tagit(tmp_path_factory.mktemp("any"), {})
    vcs.init({})
    for number, tree in enumerate(wanted):
        for path in vcs.root.iterdir():
            if path.name != ".tagit":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        snapshot(vcs, f"v{number}", **tree)
    for number in data.draw(st.lists(st.integers(0, len(wanted) - 1), min_size=1, max_size=8)):
        vcs.checkout(f"v{number}")
        assert contents(vcs.root) == wanted[number] and not vcs.is_dirty()


KILLER = """#!/bin/sh
echo >> "{folder}/calls"
[ "$(wc -l < "{folder}/calls")" -gt "$(cat "{folder}/limit")" ] && kill -9 $PPID
exec {git} "$@"
"""


def test_a_snapshot_is_there_wholly_or_not_at_all(tagit: Tagit, tmp_path: Path) -> None:
    """The process is killed when it calls git for the n-th time, for each n."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "git").write_text(KILLER.format(folder=folder, git=shutil.which("git")))
    (folder / "git").chmod(0o755)
    write(tagit, a="1", b__c="2", d="2")
    script = (
        "import sys; from pathlib import Path; from perun.vcs.tagit import Tagit; import os;"
        "Tagit(Path(sys.argv[1]), os.environ).snapshot('one')"
    )
    environ = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    for limit in range(20):
        (folder / "calls").write_text("")
        (folder / "limit").write_text(str(limit))
        command = [sys.executable, "-c", script, str(tagit.root)]
        code = subprocess.run(command, env=environ, check=False).returncode
        found = list(Tagit(tagit.root, {}).walk_major_versions())
        if found:
            break
        assert code == -9, limit
    assert limit > 3 and not tagit.is_dirty()
    (tagit.root / "a").unlink()
    tagit.snapshot("two")
    tagit.checkout("one")
    assert contents(tagit.root) == {"a": "1", "b/c": "2", "d": "2"}


def test_more_names_than_one_call_of_git_can_take() -> None:
    paths = [f"{number:06}" + "x" * 93 for number in range(12_000)]  # 99 bytes and an end each
    batches = list(_batches(iter(paths)))
    assert [path for batch in batches for path in batch] == paths
    assert [len(batch) for batch in batches] == [5000, 5000, 2000]
    assert list(_batches([])) == [] and list(_batches(["x" * 600_000, "y"])) == [["x" * 600_000], ["y"]]


def test_names_that_another_system_would_refuse_are_taken(tagit: Tagit) -> None:
    (tagit.root / "a\\b").write_text("1")
    (tagit.root / "git~1").write_text("2")  # git would leave it out, and say nothing
    first = tagit.snapshot("one")
    assert files_of(tagit, first) == {"a\\b", "git~1"}
    (tagit.root / "a\\b").write_text("3")
    tagit.snapshot("two")
    tagit.checkout("one")
    assert contents(tagit.root) == {"a\\b": "1", "git~1": "2"}


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(VersionControlError, match=f"cannot make the folder {tmp_path}/file/project/.tagit"):
        Tagit(tmp_path / "file" / "project", {}).init({})


def test_damaged_snapshots_are_named(tagit: Tagit) -> None:
    snapshot(tagit, "one", a="1")
    shutil.rmtree(tagit.root / ".tagit" / "objects")
    with pytest.raises(VersionControlError, match=r"the snapshots in .*\.tagit are damaged") as caught:
        tagit.is_dirty()
    assert "backup" in caught.value.hint


def test_other_errors_of_git_are_told_as_they_are(tagit: Tagit) -> None:
    write(tagit, a="1")
    with pytest.raises(VersionControlError, match=r"git cat-file failed") as caught:
        tagit._git.ask("cat-file", "-e", "0" * 40 + "^{commit}")
    assert "damaged" not in caught.value.message


def test_who_would_lose_changes_is_told_how_to_keep_them(tagit: Tagit) -> None:
    for number in (1, 2):
        snapshot(tagit, f"v{number}", a=str(number))
    write(tagit, a="3")
    with pytest.raises(VersionControlError, match="a") as caught:
        tagit.checkout("v1")
    assert "perun tag NAME" in caught.value.hint
    assert sorted(tagit.changed_files()) == ["a"]
    write(tagit, new="")
    assert sorted(tagit.changed_files()) == ["a", "new"]
