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
    """Install what the tests need, then Perun, and run them; skipped where the packages cannot be had."""
    requirements = PROJECT / "requirements" / "test.txt"
    said = session.run_install(
        *("python", "-m", "pip", "install", "--quiet", "--quiet"),
        *("--require-hashes", "--no-deps", "--requirement"),
        requirements,
        silent=True,
        success_codes=[0, 1],
    )
    if "ERROR: " in str(said):
        session.log(said)
        if reason := unavailable(str(said)):
            session.skip(reason)
        session.error("what the tests need cannot be installed")
    session.install("--quiet", "--quiet", "--no-build-isolation", "--no-deps", str(PROJECT))
    session.run("python", "-m", "pytest", *(session.posargs or ("--numprocesses=auto", "-m", "not slow")))


def unavailable(said: str) -> str:
    """What pip says of a package that no index offers, or of an index that breaks off; else empty."""
    signs = ("No matching distribution found", "HTTPSConnectionPool", "HTTPConnectionPool")
    errors = [line for line in said.splitlines() if line.startswith("ERROR: ")]
    problems = [line for line in errors if any(sign in line for sign in signs)]
    return problems[-1].removeprefix("ERROR: ") if problems else ""
