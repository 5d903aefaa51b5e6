"""The server of trials, and folders in memory for them."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fault_injection import Server, build, scratch
from fault_scenes import Project


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled `inject.c`."""
    return build(tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="session")
def server(library: Path) -> Iterator[Server]:
    """One process for all trials, with what `check` needs imported."""
    folder = scratch()
    made = Server(library, folder, ["numpy", "scipy.stats"])
    yield made
    made.close()
    shutil.rmtree(folder)


@pytest.fixture
def room() -> Iterator[Path]:
    """An empty folder in memory."""
    folder = scratch()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def make_project(server: Server, room: Path) -> Callable[[], Project]:
    """Make an empty project."""
    return lambda: Project(room / "project", dict(os.environ), server)
