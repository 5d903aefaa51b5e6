"""How projects are built, told by their files; and that the commands do build them."""

import json
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from perun.core.config.templates import recognise

SETUPTOOLS = "[build-system]\nrequires = ['setuptools']\nbuild-backend = 'setuptools.build_meta'\n"


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


@pytest.mark.parametrize(("files", "system", "file"), [
    ({"Makefile": ""}, "make", "Makefile"),
    ({"GNUmakefile": "", "Makefile": ""}, "make", "GNUmakefile"),
    ({"configure": ""}, "autotools", "configure"),
    ({"CMakeLists.txt": "", "Makefile": ""}, "cmake", "CMakeLists.txt"),
    ({"meson.build": "project ('x', 'c')", "pyproject.toml": SETUPTOOLS}, "meson", "meson.build"),
    ({"meson.build": "sources += 'x.c'", "Makefile": ""}, "make", "Makefile"),
    ({"Cargo.toml": "", "Makefile": ""}, "cargo", "Cargo.toml"),
    ({"setup.py": "", "Makefile": ""}, "setuptools", "setup.py"),
    ({"pyproject.toml": SETUPTOOLS}, "setuptools", "pyproject.toml"),
    ({"pyproject.toml": "[project]\nname = 'x'\n"}, "setuptools", "pyproject.toml"),
    ({"pyproject.toml": "[build-system]\nrequires = []\n"}, "setuptools", "pyproject.toml"),
])  # fmt: skip
def test_recognised(files: dict[str, str], system: str, file: str, tmp_path: Path) -> None:
    found = recognise(write(tmp_path, files))
    assert found is not None and (found.system, found.file) == (system, file)
    name, key, value = shlex.split(found.command)[-3:]
    assert (name, key, json.loads(value)) == ("set", "execute.pre_run", list(found.commands))


@pytest.mark.parametrize("files", [
    {},
    {"main.c": ""},
    {"sub/Makefile": ""},
    {"pyproject.toml": "[tool.ruff]\n"},
    {"pyproject.toml": "[build-system]\nbuild-backend = 'hatchling.build'\n"},
    {"pyproject.toml": "= broken"},
    {"pyproject.toml": "build-system = 3"},
])  # fmt: skip
def test_not_recognised(files: dict[str, str], tmp_path: Path) -> None:
    assert recognise(write(tmp_path, files)) is None


def test_setuptools_makes_no_compiled_program(tmp_path: Path) -> None:
    write(tmp_path, {"setup.py": "", "pyproject.toml": SETUPTOOLS})
    assert recognise(tmp_path, makes_programs=True) is None
    found = recognise(write(tmp_path, {"Makefile": ""}), makes_programs=True)
    assert found is not None and found.system == "make"


PROGRAM = "int main(void) { return 0; }\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tools", "files", "product"),
    [
        (("make", "cc"), {"Makefile": "prog: main.c\n\tcc -o prog main.c\n", "main.c": PROGRAM}, "prog"),
        (
            ("cmake", "cc"),
            {
                "CMakeLists.txt": "cmake_minimum_required(VERSION 3.5)\nproject(x C)\n"
                "add_executable(prog main.c)\n",
                "main.c": PROGRAM,
            },
            "build/prog",
        ),
        (
            ("meson", "ninja", "cc"),
            {"meson.build": "project('x', 'c')\nexecutable('prog', 'main.c')\n", "main.c": PROGRAM},
            "build/prog",
        ),
        (
            ("cargo",),
            {
                "Cargo.toml": "[package]\nname = 'prog'\nversion = '0.1.0'\nedition = '2021'\n",
                "src/main.rs": "fn main() {}\n",
            },
            "target/release/prog",
        ),
        (
            ("python3",),
            {
                "setup.py": "from setuptools import setup\nsetup(name='x', py_modules=['x'], "
                "entry_points={'console_scripts': ['prog=x:main']})\n",
                "x.py": "def main():\n    pass\n",
            },
            "build/venv/bin/prog",
        ),
    ],
    ids=["make", "cmake", "meson", "cargo", "setuptools"],
)
def test_the_commands_build_also_a_second_time(tools, files, product: str, tmp_path: Path) -> None:
    for tool in tools:
        # A cargo without a toolchain in this home folder cannot even tell its version.
        if (
            shutil.which(tool) is None
            or subprocess.run([tool, "--version"], capture_output=True, check=False).returncode
        ):
            pytest.skip(f"{tool} is not installed")
    found = recognise(write(tmp_path, files))
    assert found is not None
    for _ in range(2):
        for command in found.commands:
            done = subprocess.run(
                shlex.split(command), cwd=tmp_path, capture_output=True, text=True, check=False
            )
            if "No matching distribution" in done.stderr or "Could not find a version" in done.stderr:
                pytest.skip("there is no package index")
            assert done.returncode == 0, done
        assert (tmp_path / product).exists()
