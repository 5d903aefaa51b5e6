"""The tests with every supported Python of this machine, each in an environment of the locked versions.

`nox` runs all tests but the slow ones; what follows `--` goes to pytest: `nox -s tests-3.13 -- tests/unit`.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import nox

PROJECT = Path(__file__).parent
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_missing_interpreters = False


def pythons() -> dict[str, str]:
    """The Pythons by version, the oldest first."""
    found = subprocess.check_output([PROJECT / "tools" / "pythons.sh"], text=True)
    return dict(line.split(" ", 1) for line in found.splitlines())


FOUND = pythons()
# nox looks for `python3.13` on the path.
folders = [str(Path(path).parent) for path in FOUND.values()]
os.environ["PATH"] = os.pathsep.join([*folders, os.environ["PATH"]])


@nox.session(python=list(FOUND))
def tests(session: nox.Session) -> None:
    """Install what the tests need, then Perun, and run them."""
    requirements = PROJECT / "requirements" / "test.txt"
    session.install("--quiet", "--quiet", "--require-hashes", "--requirement", str(requirements))
    session.install("--quiet", "--quiet", "--no-build-isolation", "--no-deps", str(PROJECT))
    session.run("python", "-m", "pytest", *(session.posargs or ("--numprocesses=auto", "-m", "not slow")))
