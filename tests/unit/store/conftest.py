"""Stores in temporary folders, and small profiles to fill them with."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import perun
from perun.profile.factory import Profile
from perun.store import Store
from perun.store.database import DatabaseFiles
from postgresql_server import new_schema, served
from store_paths import StorePath, listdir, utime

MakeProfile = Callable[..., Profile]
KINDS = ["files", *(pytest.param(one, marks=pytest.mark.slow) for one in ("sqlite", "postgresql"))]
"""What a store can be in. `tests/contract` has what all runs of the tests show of databases."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each test stores of all kinds, but those that are about files on the disk."""
    if "store" in metafunc.fixturenames:
        on_disk = metafunc.definition.get_closest_marker("on_disk")
        metafunc.parametrize("store", KINDS[:1] if on_disk else KINDS, indirect=True)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    with served() as url:
        yield url


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    if request.param == "files":
        made = Store(tmp_path / ".perun")
        made.create()
        yield made
        return
    is_sqlite = request.param == "sqlite"
    url = "sqlite" if is_sqlite else new_schema(request.getfixturevalue("postgresql"))
    made = Store(StorePath(tmp_path / ".perun"), url=url)
    assert isinstance(made.files, DatabaseFiles)
    StorePath.files = made.files
    monkeypatch.setattr(os, "utime", utime)
    monkeypatch.setattr(os, "listdir", listdir)
    made.create()
    yield made
    made.files.close()


@pytest.fixture
def make_profile() -> MakeProfile:
    def make(
        amount: float = 1.0, *, type_: str = "time", cmd: str = "./app", args: str = "-v",
        workload: str = "input.txt", collector: str = "time", postprocessors: tuple[str, ...] = (),
        origin: str = ""
    ) -> Profile:  # fmt: skip
        profile = Profile({
            "header": {"type": type_, "cmd": cmd, "args": args, "workload": workload, "units": {type_: "s"}},
            "collector_info": {"name": collector, "params": {}},
            "postprocessors": [{"name": name, "params": {}} for name in postprocessors],
            "resources": {},
            "resource_type_map": {},
            "models": [],
        })  # fmt: skip
        if origin:
            profile["origin"] = origin
        profile.update_resources([{"amount": amount, "uid": "main", "type": type_, "subtype": "real"}])
        return profile

    return make


@pytest.fixture
def minor() -> Callable[[Any], str]:
    """Names of minor versions, one for each value."""

    def name(of: Any = 0) -> str:
        return hashlib.sha1(f"minor {of}".encode()).hexdigest()

    return name


@pytest.fixture
def spawn() -> Callable[..., subprocess.Popen[str]]:
    """Start Python code in a process of its own that imports the same Perun."""

    def start(code: str, *arguments: object) -> subprocess.Popen[str]:
        sources = str(Path(perun.__file__).parent.parent)
        environ = {**os.environ, "PYTHONPATH": sources}
        return subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)], env=environ, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True
        )  # fmt: skip

    return start


@pytest.fixture
def tree_of() -> Callable[[Path], dict[str, bytes]]:
    """All files below a folder and what they hold, to show that nothing changed."""

    def contents(root: Path) -> dict[str, bytes]:
        files = (path for path in sorted(root.rglob("*")) if path.is_file())
        return {str(path.relative_to(root)): path.read_bytes() for path in files}

    return contents
