"""Tagit beyond the contract: what a snapshot holds, and that nothing of the user's is lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perun.errors import VersionControlError
from perun.plugin.api import SavedState
from perun.vcs.tagit import Tagit


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


def contents(folder: Path) -> dict[str, str]:
    """All files but those of tagit; of a link where it points, with `*` where a file may be run."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name.split("/")[0] == ".tagit" or (path.is_dir() and not path.is_symlink()):
            continue
        text = "-> " + os.readlink(path) if path.is_symlink() else path.read_text()
        found[name] = text + ("*" if not path.is_symlink() and os.access(path, os.X_OK) else "")
    return found


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
    write(tagit, a="a file where a folder was", link__x="a folder where a link was")
    tagit.snapshot("two")
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


def test_same_content_is_kept_once(tagit: Tagit) -> None:
    write(tagit, a="x" * 100_000, b="x" * 100_000)
    tagit.snapshot("one")
    write(tagit, c="x" * 100_000)
    tagit.snapshot("two")
    objects = [path for path in (tagit.root / ".tagit" / "objects").rglob("*") if path.is_file()]
    assert len(objects) == 3  # the content and two lists of files
    assert sum(path.stat().st_size for path in objects) < 2000


def test_what_is_ignored(tagit: Tagit) -> None:
    write(
        tagit,
        keep_c="",
        x_o="",
        build__out="",
        src__build="a file",
        docs__html__page="",
        docs__text="",
        perun="x",
    )
    write(tagit, **{".perun__local.yml": "", ".git__HEAD": ""})
    (tagit.root / "src" / "__pycache__").mkdir()
    (tagit.root / "src" / "__pycache__" / "x.pyc").touch()
    write(tagit, **{".tagitignore": "# built\n*_o\nbuild/\ndocs/html\n\n"})
    first = tagit.snapshot("one")
    assert set(tagit._tree_of(first)) == {
        ".tagitignore", "keep_c", "src/build", "docs/text", "perun",
    }  # fmt: skip
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
    write(tagit, a="1")
    tagit.snapshot("one")
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
    write(tagit, a="1")
    tagit.snapshot("one")
    write(tagit, a="2")
    tagit.snapshot("two")
    tagit.checkout("one")
    write(tagit, a="3")
    with pytest.raises(VersionControlError, match="linear") as caught:
        tagit.snapshot("three")
    assert "--restore 'two'" in caught.value.hint


def test_changes_to_other_files_are_carried_along(tagit: Tagit) -> None:
    write(tagit, a="1", same="same")
    tagit.snapshot("one")
    write(tagit, a="2")
    tagit.snapshot("two")
    write(tagit, same="changed", new="mine")
    tagit.checkout("one")
    assert contents(tagit.root) == {"a": "1", "same": "changed", "new": "mine"}


def test_nothing_is_written_through_a_link(tagit: Tagit, tmp_path: Path) -> None:
    write(tagit, folder__a="1")
    tagit.snapshot("one")
    write(tagit, folder__a="2")
    tagit.snapshot("two")
    shutil.rmtree(tagit.root / "folder")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a").write_text("theirs")
    (tagit.root / "folder").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(VersionControlError, match="folder"):
        tagit.checkout("one")
    assert (tmp_path / "elsewhere" / "a").read_text() == "theirs"


def test_a_folder_with_files_of_the_users_is_in_the_way(tagit: Tagit) -> None:
    write(tagit, a="a file")
    tagit.snapshot("one")
    (tagit.root / "a").unlink()
    tagit.snapshot("two")
    write(tagit, a__mine="mine")
    with pytest.raises(VersionControlError, match=r"overwritten: a$"):
        tagit.checkout("one")
    (tagit.root / "a" / "mine").unlink()
    tagit.checkout("one")
    assert contents(tagit.root) == {"a": "a file"}


def test_what_a_run_changed_is_kept(tagit: Tagit) -> None:
    write(tagit, a="1", b="1")
    tagit.snapshot("one")
    write(tagit, a="2")
    tagit.snapshot("two")
    write(tagit, a="mine")
    saved = tagit.prepare_save()
    tagit.finish_save(saved)
    tagit.checkout("one")
    write(tagit, a="of the run", b="of the run")
    tagit.resume(saved)
    assert contents(tagit.root) == {"a": "mine", "b": "1"}
    (kept,) = (tagit.root / ".tagit" / "saved").iterdir()
    assert contents(kept / "files") == {"a": "of the run", "b": "of the run"}
    tagit.resume(saved)  # once more, as `perun recover` of a run that was killed just then does
    assert contents(tagit.root) == {"a": "mine", "b": "1"}


def test_restoring_what_is_not_there_any_more(tagit: Tagit) -> None:
    write(tagit, a="1")
    head = tagit.snapshot("one")
    write(tagit, a="2")
    tagit.snapshot("two")
    with pytest.raises(VersionControlError, match="not in"):
        tagit.resume(SavedState(True, head, "no-such"))


@pytest.mark.parametrize("name", ["history", "HEAD"])
def test_damaged_files_of_its_own(tagit: Tagit, name: str) -> None:
    write(tagit, a="1")
    tagit.snapshot("one")
    (tagit.root / ".tagit" / name).write_text("nonsense\n")
    with pytest.raises(VersionControlError, match=name):
        Tagit(tagit.root, {}).get_minor_head()


def test_damaged_contents_are_never_written_out(tagit: Tagit) -> None:
    write(tagit, a="1")
    tagit.snapshot("one")
    write(tagit, a="2")
    tagit.snapshot("two")
    tree = tagit._tree_of("one")
    damaged = tagit.root / ".tagit" / "objects" / tree["a"].checksum[:2] / tree["a"].checksum[2:]
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    with pytest.raises(VersionControlError, match="damaged"):
        tagit.checkout("one")
    assert contents(tagit.root) == {"a": "2"}


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
    with pytest.raises(VersionControlError, match=r"/a: Permission denied"):
        tagit.snapshot("one")
    assert list(tagit.walk_major_versions()) == []


IN_PLACE = """
import sys
from pathlib import Path
from perun import atomic
from perun.plugin.api import SavedState
from perun.vcs.tagit import Tagit

left = int(sys.argv[2])
real = {}

def counted(name, function):
    def call(*arguments, **named):
        global left
        left -= 1
        if left < 0:
            import os
            os._exit(7)
        return function(*arguments, **named)
    return call

import os, pathlib
os.replace = counted("replace", os.replace)
pathlib.Path.unlink = counted("unlink", pathlib.Path.unlink)
pathlib.Path.rmdir = counted("rmdir", pathlib.Path.rmdir)

vcs = Tagit(Path(sys.argv[1]), {})
note = Path(sys.argv[1]).parent / "note"
saved = vcs.prepare_save()
note.write_text(repr(tuple(saved)))
vcs.finish_save(saved)
for version in ("one", "two", "three"):
    vcs.checkout(version)
vcs.resume(saved)
"""


def test_killed_at_any_step(tagit: Tagit) -> None:
    write(tagit, a="1", b__c="1", same="s")
    tagit.snapshot("one")
    write(tagit, a="2", d="2")
    shutil.rmtree(tagit.root / "b")
    tagit.snapshot("two")
    write(tagit, a="3", b="a file now", same="s")
    tagit.snapshot("three")
    write(tagit, a="mine", same="mine", untracked="mine")
    (tagit.root / "d").unlink()
    expected = contents(tagit.root)
    original = tagit.root.parent / "original"
    shutil.copytree(tagit.root, original, symlinks=True)
    script = tagit.root.parent / "in_place.py"
    script.write_text(dedent(IN_PLACE))
    note = tagit.root.parent / "note"

    for step in range(200):
        shutil.rmtree(tagit.root)
        shutil.copytree(original, tagit.root, symlinks=True)
        note.unlink(missing_ok=True)
        code = subprocess.run([sys.executable, script, str(tagit.root), str(step)], check=False).returncode
        if note.exists():
            vcs = Tagit(tagit.root, {})
            vcs.resume(SavedState(*eval(note.read_text())))
            assert vcs.get_head_major_version() == "main"
        assert contents(tagit.root) == expected, step
        if code == 0:
            break
        assert code == 7
    assert step > 20


names = st.sampled_from(["a", "b", "c", "a/x", "a/y", "b/z/w"])
trees = st.dictionaries(names, st.sampled_from(["1", "2", "3"])).filter(
    lambda tree: not any(other.startswith(f"{path}/") for path in tree for other in tree)
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.lists(trees, min_size=2, max_size=5), st.data())
def test_any_version_from_any_other(tmp_path_factory: pytest.TempPathFactory, wanted, data) -> None:
    vcs = Tagit(tmp_path_factory.mktemp("any"), {})
    vcs.init({})
    for number, tree in enumerate(wanted):
        for path in vcs.root.iterdir():
            if path.name != ".tagit":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        write(vcs, **tree)
        vcs.snapshot(f"v{number}")
    for number in data.draw(st.lists(st.integers(0, len(wanted) - 1), min_size=1, max_size=8)):
        vcs.checkout(f"v{number}")
        assert contents(vcs.root) == wanted[number]
        assert not vcs.is_dirty()


SNAPSHOT = """
import os, sys
from pathlib import Path
from perun.vcs.tagit import Tagit

left, real = int(sys.argv[2]), {"replace": os.replace, "sync": os.sync}

def counted(name):
    def call(*arguments):
        global left
        left -= 1
        if left < 0:
            os._exit(7)
        return real[name](*arguments)
    return call

os.replace, os.sync = counted("replace"), counted("sync")
Tagit(Path(sys.argv[1]), {}).snapshot("one")
"""


def test_a_snapshot_is_there_wholly_or_not_at_all(tagit: Tagit) -> None:
    script = tagit.root.parent / "snapshot.py"
    script.write_text(SNAPSHOT)
    write(tagit, a="1", b__c="2", d="2")
    for step in range(20):
        code = subprocess.run([sys.executable, script, str(tagit.root), str(step)], check=False).returncode
        found = list(Tagit(tagit.root, {}).walk_major_versions())
        assert bool(found) == (code == 0), step
        if code == 0:
            break
    assert step > 3
    (tagit.root / "a").unlink()
    tagit.snapshot("two")
    tagit.checkout("one")
    assert contents(tagit.root) == {"a": "1", "b/c": "2", "d": "2"}
    assert list((tagit.root / ".tagit" / "objects").glob(".tmp-*")) == []
