"""A git that cannot replace a file only warns; nothing that was put aside may be forgotten then."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from perun.core.errors import VersionControlError

WARNING = "warning: unable to unlink 'a.txt': Input/output error"


@pytest.fixture
def warning_git(tmp_path: Path) -> Path:
    """A git whose first checkout replaces no file, says so on standard error, and ends with 0."""
    folder, real = tmp_path / "bin", shutil.which("git")
    folder.mkdir()
    program = folder / "git"
    program.write_text(
        "#!/bin/sh\n"
        f'case "$* " in *" checkout "*) if [ ! -e "{tmp_path}/done" ]; then touch "{tmp_path}/done"\n'
        f'  for last; do :; done; "{real}" -C "$2" update-ref --no-deref HEAD "$last"\n'
        f'  "{real}" -C "$2" read-tree "$last"; echo "{WARNING}" >&2; exit 0; fi;; esac\n'
        f'exec "{real}" "$@"\n'
    )
    program.chmod(0o755)
    return folder


def test_changes_stay_put_aside_where_a_file_cannot_be_replaced(
    repo: Any, warning_git: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from perun.vcs.git import Git

    repo.write({"a.txt": "edited\n"})
    before = repo.picture()
    saved = repo.vcs.prepare_save()
    repo.vcs.finish_save(saved)
    repo.vcs.checkout("HEAD~1")
    failing = Git(repo.root, {**repo.environ, "PATH": f"{warning_git}:{repo.environ['PATH']}"})
    with pytest.raises(VersionControlError, match=r"unable to unlink 'a\.txt'"):
        failing.resume(saved)
    assert repo.stashes()
    failing.resume(saved)
    assert repo.picture() == before


def test_a_working_copy_is_made_anew_where_a_file_cannot_be_replaced(repo: Any, tmp_path: Path) -> None:
    """Else a file of another version would be measured."""
    from perun.vcs.git import Git

    folder, real, armed = tmp_path / "bin", shutil.which("git"), tmp_path / "armed"
    folder.mkdir()
    program = folder / "git"
    program.write_text(
        "#!/bin/sh\n"
        f'case "$* " in *" checkout "*) if [ -e "{armed}" ]; then rm "{armed}"\n'
        f'  echo "{WARNING}" >&2; exit 0; fi;; esac\n'
        f'exec "{real}" "$@"\n'
    )
    program.chmod(0o755)
    failing = Git(repo.root, {**repo.environ, "PATH": f"{folder}:{repo.environ['PATH']}"})
    old, new = failing.massage_parameter("HEAD~1"), failing.get_minor_head()
    with failing.working_copy(tmp_path / "copy") as copy:
        place = copy.switch(old)
        before = {path.name: path.read_text() for path in place.glob("*.txt")}
        armed.touch()
        assert copy.switch(new) == place
        assert not armed.exists()
        after = {path.name: path.read_text() for path in place.glob("*.txt")}
        dirty = Git(place, repo.environ).is_dirty()
    assert after != before
    assert not dirty
