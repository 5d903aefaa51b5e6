"""Plugins written into a folder, and a distribution that is installed without an installer."""

import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Write = Callable[[str, str], Path]


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    folder = tmp_path / "plugins"
    folder.mkdir()
    return folder


@pytest.fixture
def write(plugins: Path) -> Write:
    """Write the text of a file below the folder of plugins."""

    def write(name: str, text: str) -> Path:
        path = plugins / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    return write


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str, str], None]]:
    """Install a distribution `name` with one module and the entry points of the given text."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    modules = set(sys.modules)

    def install(name: str, source: str, entry_points: str) -> None:
        (site / f"{name}.py").write_text(source, encoding="utf-8")
        info = site / f"{name}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(textwrap.dedent(entry_points))

    yield install
    for module in set(sys.modules) - modules:
        if str(site) in str(getattr(sys.modules[module], "__file__", "")):
            del sys.modules[module]
