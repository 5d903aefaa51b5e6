"""Stores in temporary folders, and small profiles to fill them with."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import perun
from perun.profile.factory import Profile
from perun.store import Store

MakeProfile = Callable[..., Profile]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / ".perun")
    made.create()
    return made


@pytest.fixture
def make_profile() -> MakeProfile:
    def make(
        amount: float = 1.0,
        *,
        type_: str = "time",
        cmd: str = "./app",
        args: str = "-v",
        workload: str = "input.txt",
        collector: str = "time",
        postprocessors: tuple[str, ...] = (),
        origin: str = "",
    ) -> Profile:
        profile = Profile(
            {
                "header": {
                    "type": type_,
                    "cmd": cmd,
                    "args": args,
                    "workload": workload,
                    "units": {type_: "s"},
                },
                "collector_info": {"name": collector, "params": {}},
                "postprocessors": [{"name": name, "params": {}} for name in postprocessors],
                "resources": {},
                "resource_type_map": {},
                "models": [],
            }
        )
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
            [sys.executable, "-c", code, *map(str, arguments)],
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


@pytest.fixture
def tree_of() -> Callable[[Path], dict[str, bytes]]:
    """All files below a folder and what they hold, to show that nothing changed."""

    def contents(root: Path) -> dict[str, bytes]:
        files = (path for path in sorted(root.rglob("*")) if path.is_file())
        return {str(path.relative_to(root)): path.read_bytes() for path in files}

    return contents
