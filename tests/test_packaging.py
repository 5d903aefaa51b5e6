"""What is built is what is in the source: no file forgotten, none too many, and it starts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
PACKAGE = PROJECT / "src" / "perun"
NOT_INSTALLED = {"meson.build", "meson.options"}
BUILT = {"perun/collect/complexity/libperun_complexity.so", "perun/collect/memory/libperun_memory.so"}
WITH_CLANG = {"perun/collect/trace/perun_trace", "perun/collect/trace/trace.bpf.o"}
"""What is built besides where clang and libbpf are there."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel built from this source, with the build tools of the environment the tests run in."""
    folder = tmp_path_factory.mktemp("wheel")
    bin_folder = str(Path(sys.executable).parent)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"),
            *("--wheel-dir", str(folder), str(PROJECT)),
        ],
        env={**os.environ, "PATH": bin_folder + os.pathsep + os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built


def source_version() -> str:
    match = re.search(r'^__version__ = "(.+)"$', (PACKAGE / "__init__.py").read_text("utf-8"), re.MULTILINE)
    assert match
    return match[1]


def test_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    expected = {
        f"perun/{path.relative_to(PACKAGE).as_posix()}"
        for path in PACKAGE.rglob("*")
        if path.is_file()
        and path.name not in NOT_INSTALLED
        and not {"__pycache__", "native"}.intersection(path.relative_to(PACKAGE).parts)
    }
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packed - WITH_CLANG == expected | BUILT
    assert {"perun/py.typed", "perun/__main__.py", "perun/cli/help.txt"} <= packed


def test_wheel_carries_version_license_and_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (folder,) = {name.partition("/")[0] for name in archive.namelist() if ".dist-info/" in name}
        metadata = archive.read(f"{folder}/METADATA").decode()
        commands = archive.read(f"{folder}/entry_points.txt").decode()
        license_text = archive.read(f"{folder}/licenses/LICENSE").decode()
    assert f"\nVersion: {source_version()}\n" in metadata
    assert "\nLicense-Expression: Apache-2.0\n" in metadata
    assert "Apache License" in license_text
    assert "perun = perun.__main__:main" in commands.replace("=", " = ").replace("  ", " ")


@pytest.mark.slow
def test_wheel_starts_in_a_fresh_environment(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    bin_folder = tmp_path / "venv" / "bin"
    subprocess.run([bin_folder / "python", "-m", "pip", "install", "--quiet", wheel], check=True)

    def perun(*arguments: str) -> str:
        return subprocess.check_output([bin_folder / "perun", *arguments], text=True, cwd=tmp_path)

    assert perun("--version") == f"perun {source_version()}\n"
    assert "check" in perun("--help")
    assert "repository" in perun("init", "project") + perun("init", "--help")
