"""Print the version of the sources in a folder: that of the git tag, `v1.2.3`, at or before the commit.

    v1.2.3                              1.2.3
    five commits after v1.2.3           1.2.4.dev5+g0123abc
    with changes that no commit has     1.2.4.dev5+g0123abc.dirty
    before the first tag                0.1.0.dev5+g0123abc

Archives that git or a forge makes carry it in `.git_archival.txt`, source distributions in `PKG-INFO`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

FIRST = "0.1.0"
"""What will be released first."""
_TAG = r"v(?P<version>\d+(?:\.\d+)*(?:(?:a|b|rc)\d+)?(?:\.post\d+)?)"
_DESCRIBED = re.compile(_TAG + r"(?:-(?P<distance>\d+)-g(?P<commit>[0-9a-f]+))?(?P<dirty>-dirty)?")
_UNTAGGED = re.compile(r"(?P<commit>[0-9a-f]+)(?P<dirty>-dirty)?")


def version_of(root: Path) -> str:
    """The version of the sources in `root`.

    :raises SystemExit: where the tag is no version.
    """
    if (root / ".git").exists():  # a file in a linked working tree
        return _of_git(root)
    for name, pattern in (
        ("PKG-INFO", r"^Version: (\S+)$"),
        (".git_archival.txt", r"^describe: ([^$%\s]+)$"),
    ):
        path = root / name
        found = path.is_file() and re.search(pattern, path.read_text("utf-8"), re.MULTILINE)
        if found:
            return found[1] if name == "PKG-INFO" else _of_description(found[1])
    return f"{FIRST}.dev0"


def _of_git(root: Path) -> str:
    try:
        described = _git(root, "describe", "--tags", "--long", "--dirty", "--always", "--match", "v[0-9]*")
        untagged = _UNTAGGED.fullmatch(described)
        if untagged is None:
            return _of_description(described)
        distance = _git(root, "rev-list", "--count", "HEAD")
        return _between(FIRST, distance, untagged["commit"], untagged["dirty"])
    except (OSError, subprocess.CalledProcessError):  # no git, no commit, or a folder of somebody else
        return f"{FIRST}.dev0"


def _git(root: Path, *arguments: str) -> str:
    # A hook of git, or who rebuilds during one, has these point to another repository.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    argv = ["git", "-C", str(root), *arguments]
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _of_description(described: str) -> str:
    """The version that an answer of `git describe` means."""
    found = _DESCRIBED.fullmatch(described)
    if found is None:
        raise SystemExit(f"git describes this commit as {described}, which is no version: tag it as v1.2.3")
    if not int(found["distance"] or 0) and not found["dirty"]:
        return found["version"]
    following = re.sub(r"\d+$", lambda last: str(int(last[0]) + 1), found["version"])
    return _between(following, found["distance"] or "0", found["commit"] or "", found["dirty"])


def _between(following: str, distance: str, commit: str, dirty: str | None) -> str:
    parts = [f"g{commit}" if commit else "", "dirty" if dirty else ""]
    local = ".".join(filter(None, parts))
    return f"{following}.dev{distance}" + (f"+{local}" if local else "")


if __name__ == "__main__":
    print(version_of(Path(sys.argv[1]).resolve()))
