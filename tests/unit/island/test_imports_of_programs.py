"""Modules are patched when a program imports them, whatever their loader is."""

import importlib
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import pytest

from perun.island.hooks import PatchingFinder

NAME = "perun_test_of_patching"


class Loader:
    """A loader that is a class, as that of the modules which are built into the interpreter."""

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(name, cls) if name == NAME else None  # type: ignore[arg-type]

    @classmethod
    def create_module(cls, spec: ModuleSpec) -> None:
        assert spec.loader is cls

    @classmethod
    def exec_module(cls, module: ModuleType) -> None:
        assert module.__loader__ is cls
        assert module.__spec__ and module.__spec__.loader is cls
        module.value = 1  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def finder() -> Iterator[None]:
    sys.meta_path.append(Loader)  # type: ignore[arg-type]
    yield
    sys.meta_path.remove(Loader)  # type: ignore[arg-type]
    sys.modules.pop(NAME, None)


def test_a_loader_that_is_a_class() -> None:
    before = dict(vars(Loader))
    patched: list[Any] = []
    patching = PatchingFinder(None, {NAME: lambda recorder, module: patched.append(module.value)})  # type: ignore[arg-type]
    module = importlib.import_module(NAME)
    assert patched == [1] and module.__spec__ and module.__spec__.loader is Loader
    assert dict(vars(Loader)) == before
    importlib.reload(module)
    assert patched == [1]
    patching.remove()
    assert patching not in sys.meta_path


def test_what_is_loaded_is_patched_at_once_and_nothing_after_the_end() -> None:
    patched: list[str] = []
    names = {"sys": lambda recorder, module: patched.append("sys"), NAME: lambda *both: patched.append(NAME)}
    patching = PatchingFinder(None, names)  # type: ignore[arg-type]
    assert patched == ["sys"]
    patching.remove()
    importlib.import_module(NAME)
    assert patched == ["sys"]
