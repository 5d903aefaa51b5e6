import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from perun.vcs.git import Git


class Sandbox:
    """A real git repository that sees no configuration but its own."""

    def __init__(self, root: Path, environ: dict[str, str]) -> None:
        self.root = root
        self.environ = environ

    @property
    def vcs(self) -> Git:
        return Git(self.root, self.environ)

    def git(self, *arguments: str, at: Path | None = None, data: bytes | None = None) -> str:
        """Output of git without its last line end."""
        done = subprocess.run(
            ["git", "-C", str(at or self.root), *arguments], env=self.environ, input=data,
            capture_output=True, check=False
        )  # fmt: skip
        assert done.returncode == 0, (arguments, done.stderr)
        return done.stdout.decode("utf-8", "surrogateescape").removesuffix("\n")

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def commit(self, message: str = "change", files: dict[str, str] | None = None) -> str:
        """Commit all that is there; the checksum."""
        self.write(files or {})
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--allow-empty", "--allow-empty-message", "-m", message)
        return self.git("rev-parse", "HEAD")

    def shell(self, script: str, at: Path | None = None) -> None:
        """Run a script of the shell in the folder; it ends at the first command that fails."""
        subprocess.run(["sh", "-ec", script], cwd=at or self.root, env=self.environ, check=True)

    def comes_back(self, version: str = "HEAD~1") -> str:
        """Put changes aside, look at another version, restore: nothing differs. The state that was saved."""
        before = self.picture()
        saved, state = self.vcs.save_state()
        self.vcs.checkout(version)
        self.vcs.restore_state(saved, state)
        assert self.picture() == before
        return state

    def tree(self) -> dict[str, str]:
        """All files of the folder but git's own: path to content (of a link: where it points)."""
        found = {}
        for place, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if name != ".git"]
            for name in names:
                path = Path(place) / name
                if path != self.root / ".git":
                    text = os.readlink(path) if path.is_symlink() else path.read_text(encoding="utf-8")
                    found[str(path.relative_to(self.root))] = text
        return found

    def picture(self) -> tuple[dict[str, str], str, str, str]:
        """All that must not change: files, index, where HEAD is, branches."""
        return (
            self.tree(),
            self.git("ls-files", "--stage"),
            (self.root / ".git" / "HEAD").read_text(encoding="utf-8", errors="replace"),
            self.git("for-each-ref", "refs/heads", "refs/tags"),
        )

    def stashes(self) -> list[str]:
        return self.git("stash", "list", "--format=%H").split()


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir()
    return {
        "PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Ada Lovelace", "GIT_AUTHOR_EMAIL": "ada@example.org",
        "GIT_AUTHOR_DATE": "2019-12-31T23:30:00-0100", "GIT_COMMITTER_NAME": "Charles Babbage",
        "GIT_COMMITTER_EMAIL": "charles@example.org", "GIT_COMMITTER_DATE": "2020-01-01T00:30:00+0200"
    }  # fmt: skip


@pytest.fixture
def make(tmp_path: Path, environ: dict[str, str]) -> Callable[..., Sandbox]:
    """Makes a repository without a commit: `make("name", "--object-format=sha256")`."""

    def new(name: str = "project", *options: str) -> Sandbox:
        root = tmp_path / name
        root.mkdir(parents=True)
        sandbox = Sandbox(root, environ)
        sandbox.git("init", "--quiet", "--initial-branch=main", *options)
        return sandbox

    return new


@pytest.fixture
def repo(make: Callable[..., Sandbox]) -> Sandbox:
    """Three commits on main, HEAD on the third: `a.txt` differs in all of them."""
    sandbox = make()
    for text in ("one", "two", "three"):
        sandbox.commit(text, {"a.txt": text + "\n", "sub/b.txt": "same\n", ".gitignore": "*.log\n"})
    return sandbox
