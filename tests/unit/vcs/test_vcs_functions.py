import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import perun.vcs
from perun.plugin.api import Vcs

DOCUMENTED = [
    "init", "walk_minor_versions", "walk_major_versions", "get_minor_head", "get_head_major_version",
    "get_minor_version_info", "check_minor_version_validity", "massage_parameter", "is_dirty", "save_state",
    "restore_state", "checkout",
]  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_chosen() -> Iterator[None]:
    perun.vcs.use(None)
    yield
    perun.vcs.use(None)


def test_every_documented_function_is_there_with_the_parameters_of_the_interface() -> None:
    for name in DOCUMENTED:
        documented = inspect.signature(getattr(perun.vcs, name)).parameters
        assert len(documented) == len(inspect.signature(getattr(Vcs, name)).parameters) - 1
        assert inspect.getdoc(getattr(perun.vcs, name))


def test_they_act_on_what_use_was_told(repo: Any) -> None:
    perun.vcs.use(repo.vcs)
    head = repo.git("rev-parse", "HEAD")
    assert perun.vcs.init({})
    assert perun.vcs.get_minor_head() == perun.vcs.massage_parameter("main") == head
    assert perun.vcs.get_head_major_version() == "main"
    assert [version.desc for version in perun.vcs.walk_minor_versions(head)] == ["three", "two", "one"]
    assert [branch.name for branch in perun.vcs.walk_major_versions()] == ["main"]
    assert perun.vcs.get_minor_version_info(head).author == "Ada Lovelace"
    perun.vcs.check_minor_version_validity(head)
    repo.write({"a.txt": "edited\n"})
    assert perun.vcs.is_dirty()
    saved, state = perun.vcs.save_state()
    perun.vcs.checkout("HEAD~1")
    assert (repo.root / "a.txt").read_text() == "two\n"
    perun.vcs.restore_state(saved, state)
    assert (repo.root / "a.txt").read_text() == "edited\n"


def test_otherwise_on_the_nearest_instance(repo: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("perun.repository.repository")
    module.open_nearest = lambda: SimpleNamespace(vcs=repo.vcs)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "perun.repository.repository", module)
    assert perun.vcs.get_minor_head() == repo.git("rev-parse", "HEAD")


def test_importing_loads_nothing_heavy() -> None:
    source = Path(perun.vcs.__file__).parents[2]
    script = (
        f"import sys; sys.path.insert(0, {str(source)!r}); before = set(sys.modules); import perun.vcs;"
        "print(*sorted(set(sys.modules) - before))"
    )
    loaded = subprocess.check_output([sys.executable, "-Ic", script], text=True)
    assert set(loaded.split()) <= {"__future__", "perun", "perun.vcs", "contextvars", "_contextvars"}
