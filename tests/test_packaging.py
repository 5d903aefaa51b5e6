"""What is built is what is in the source: no file forgotten, none too many, and it starts."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Callable, Iterable, Iterator
from email.parser import Parser
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import perun

PROJECT = Path(__file__).parents[1]
PACKAGE = PROJECT / "src" / "perun"
INSTALLED = Path(perun.__file__).parent
NOT_INSTALLED = {"meson.build", "meson.options"}
BUILT = {
    "perun/collect/_calls/perun_calibration",
    "perun/collect/_calls/perun_calibration_instrumented",
    "perun/collect/complexity/libperun_complexity.so",
    "perun/collect/memory/libperun_memory.so",
    "perun/fuzz/coverage/libperun_fuzz.so",
    "perun/island/recorder/_recorder.abi3.so",
    "perun/collect/sample/perun_sample",
    "perun/core/process/perun_guard",
    "perun/collect/memory/libperun_memory_analysis.so",
    "perun/importer/libperun_samples.so",
    "perun/core/process/perun_launch",
    "perun/core/process/perun_speed",
}
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


def tool(name: str) -> Any:
    """A module of the folder `tools`, which is no package."""
    spec = importlib.util.spec_from_file_location(f"tools_{name}", PROJECT / "tools" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def source_version() -> str:
    version: str = tool("version").version_of(PROJECT)
    return version


def assert_whole(packed: set[str]) -> None:
    """These are the files of the package, and what is built."""
    expected = {
        f"perun/{path.relative_to(PACKAGE).as_posix()}"
        for path in PACKAGE.rglob("*")
        if path.is_file()
        and path.name not in NOT_INSTALLED
        and path.parent.name != "__pycache__"
        and not any(one.name == "native" and not (one / "__init__.py").exists() for one in path.parents)
    }
    assert packed - WITH_CLANG == expected | BUILT
    assert {"perun/py.typed", "perun/__main__.py", "perun/cli/help.txt"} <= packed


def test_every_file_of_the_package_is_installed_and_nothing_else() -> None:
    """The wheel that was built and installed for the tests."""
    files = metadata.files("perun-pvs") or []
    assert_whole({str(path) for path in files if path.parts[0] == "perun" and path.suffix != ".pyc"})
    (about,) = (path for path in files if path.name == "WHEEL")
    assert "Tag: cp311-abi3-" in about.read_text()
    assert {"LICENSE", "LICENSE.libbpf"} <= {path.name for path in files if "licenses" in path.parts}
    (command,) = metadata.distribution("perun-pvs").entry_points.select(group="console_scripts")
    assert (command.name, command.value) == ("perun", "perun.__main__:main")
    for name in ("collect/trace/perun_trace", "core/process/perun_launch"):
        program = INSTALLED / name
        assert os.access(program, os.X_OK) or (f"perun/{name}" in WITH_CLANG and not program.exists())


@pytest.mark.slow
def test_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert_whole({name for name in archive.namelist() if ".dist-info/" not in name})


@pytest.mark.slow
def test_wheel_carries_version_license_and_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (folder,) = {name.partition("/")[0] for name in archive.namelist() if ".dist-info/" in name}
        about = archive.read(f"{folder}/METADATA").decode()
        commands = archive.read(f"{folder}/entry_points.txt").decode()
        license_text = archive.read(f"{folder}/licenses/LICENSE").decode()
        of_libbpf = archive.read(f"{folder}/licenses/LICENSE.libbpf").decode()
        loaders = [archive.read(name) for name in WITH_CLANG & set(archive.namelist()) if "_trace" in name]
    assert Parser().parsestr(about)["Version"] == source_version()
    assert "\nLicense-Expression: Apache-2.0\n" in about
    assert "Apache License" in license_text
    assert "Redistributions in binary form must reproduce" in of_libbpf
    # libelf is under the LGPL: it is not part of the program, which loads it when it starts.
    assert all(b"\0libelf.so.1\0" in loader and b"\0libz.so.1\0" in loader for loader in loaders)
    assert "perun = perun.__main__:main" in commands.replace("=", " = ").replace("  ", " ")


@pytest.mark.slow
def test_the_wheel_is_for_every_python(wheel: Path) -> None:
    _, _, python, abi, platform = wheel.stem.split("-")
    assert (python, abi) == ("cp311", "abi3")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/WHEEL"))
        assert f"Tag: cp311-abi3-{platform}" in archive.read(name).decode().splitlines()
        names = {"perun/collect/trace/perun_trace", "perun/core/process/perun_launch"}
        programs = [info for info in archive.infolist() if info.filename in names]
        assert all(info.external_attr >> 16 & 0o111 for info in programs)
    # pip checks the checksums of the record, that of the changed file among them.
    argv = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", "--force-reinstall", wheel]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_core_is_small_and_needs_no_science_but_numpy() -> None:
    sizes = tool("installed_size")
    core = sizes.packages("perun-pvs")
    assert not core & {"scipy", "bokeh", "pandas", "pillow", "pyarrow"}
    assert sum(map(sizes.size, core)) < 120e6
    assert {"bokeh", "pillow"} <= sizes.packages("perun-pvs[plots]")


class TestVersion:
    """The version is that of the tag, in working trees, archives and source distributions."""

    def test_working_trees(self, git_repository: Any) -> None:
        version_of = tool("version").version_of
        repository = git_repository(commits=2)
        short = repository.git("rev-parse", "--short", "HEAD")
        assert version_of(repository.path) == f"0.1.0.dev2+g{short}"
        repository.git("tag", "v1.2.9")
        assert version_of(repository.path) == "1.2.9"
        repository.commit("More", {"more.txt": "1"})
        short = repository.git("rev-parse", "--short", "HEAD")
        assert version_of(repository.path) == f"1.2.10.dev1+g{short}"
        (repository.path / "more.txt").write_text("2")
        assert version_of(repository.path) == f"1.2.10.dev1+g{short}.dirty"
        repository.git("checkout", "--quiet", "more.txt")
        repository.git("tag", "v2.0rc1")
        assert version_of(repository.path) == "2.0rc1"
        repository.git("tag", "--delete", "v2.0rc1")
        repository.git("tag", "v2-of-mine")
        with pytest.raises(SystemExit, match=r"v2-of-mine.*is no version: tag it as"):
            version_of(repository.path)

    def test_hooks_of_other_repositories_do_not_matter(
        self, git_repository: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        repository, other = git_repository(commits=1), git_repository("other", commits=1)
        repository.git("tag", "v3.1")
        monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
        assert tool("version").version_of(repository.path) == "3.1"

    @pytest.mark.parametrize(
        ("name", "content", "version"),
        [
            ("PKG-INFO", "Metadata-Version: 2.1\nName: perun-pvs\nVersion: 4.5.6\n", "4.5.6"),
            (".git_archival.txt", "describe: v1.2.3\n", "1.2.3"),
            (".git_archival.txt", "describe: v1.2.3-4-g0123abc\n", "1.2.4.dev4+g0123abc"),
            (".git_archival.txt", "describe: $Format:%(describe:tags=true)$\n", "0.1.0.dev0"),
            (".git_archival.txt", "describe: %(describe:tags=true)\n", "0.1.0.dev0"),
            ("README.md", "", "0.1.0.dev0"),
        ],
    )
    def test_folders_without_git(self, name: str, content: str, version: str, tmp_path: Path) -> None:
        (tmp_path / name).write_text(content)
        assert tool("version").version_of(tmp_path) == version

    def test_a_folder_in_which_git_fails(self, tmp_path: Path) -> None:
        (tmp_path / ".git").write_text("gitdir: nowhere\n")
        assert tool("version").version_of(tmp_path) == "0.1.0.dev0"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with what the release script reads before it builds, in one commit."""
    return committed(tmp_path / "perun", ["tools/release.sh", "CHANGELOG.md", "README.md"])


def committed(path: Path, names: Iterable[str]) -> Path:
    """A repository at `path` with files of the sources as they are, in one commit."""
    for name in names:
        if (PROJECT / name).is_file():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(PROJECT / name, path / name)
    git(path, "init", "--quiet")
    git(path, "config", "user.name", "Ada")
    git(path, "config", "user.email", "ada@example.com")
    git(path, "add", "--all")
    git(path, "commit", "--quiet", "--message", "All")
    return path


def git(folder: Path, *arguments: str) -> str:
    return subprocess.check_output(["git", *arguments], cwd=folder, text=True)


def released(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["tools/release.sh", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


class TestReleaseRefuses:
    def test_what_is_no_version(self, checkout: Path) -> None:
        for arguments in ((), ("--dry-run",), ("1.0", "2.0"), ("v1.0",), ("1.0-beta",), ("1",)):
            done = released(checkout, *arguments)
            assert done.returncode == 1
            assert done.stderr.startswith("error: ")

    def test_what_the_changelog_does_not_know(self, checkout: Path) -> None:
        done = released(checkout, "9.8.7")
        assert done.returncode == 1
        assert "CHANGELOG.md has no section of this release\ngive it the heading: ## 9.8.7 - " in done.stderr

    def test_changes_and_tags_that_exist(self, checkout: Path) -> None:
        git(checkout, "tag", "v1.0.0")
        assert "the tag v1.0.0 exists" in released(checkout, "1.0.0").stderr
        (checkout / "README.md").write_text("Changed\n")
        assert "changes that are not committed" in released(checkout, "1.0.0").stderr


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A checkout with a release that was tried, and what the script said."""
    if shutil.which("clang") is None or not Path("/usr/include/bpf/libbpf.h").exists():
        pytest.skip("a release needs clang and libbpf (apt-get install clang libbpf-dev)")
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.check_output(listed, cwd=PROJECT, text=True).split("\0")
    folder = committed(tmp_path_factory.mktemp("release") / "perun with a space", filter(None, names))
    changelog = folder / "CHANGELOG.md"
    text = changelog.read_text("utf-8").replace("## 0.1.0 - unreleased", "## 9.8.7 - 2030-01-02")
    changelog.write_text(text, "utf-8")
    git(folder, "commit", "--quiet", "--all", "--message", "Release")
    done = released(folder, "--dry-run", "9.8.7")
    assert done.returncode == 0, done.stdout + done.stderr
    yield folder, done.stdout


@pytest.fixture(scope="module")
def fresh(release: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Run the command of the released wheel, installed alone, with no compiler on the PATH."""
    (built,) = (release[0] / "dist").glob("*.whl")
    folder = tmp_path_factory.mktemp("fresh")
    bin_folder = installed(folder, built)
    tools = folder / "tools"
    tools.mkdir()
    for name in ("git", "sh", "env", "cat", "addr2line"):
        found = shutil.which(name)
        if found:
            (tools / name).symlink_to(found)

    def run(*arguments: str | Path, cwd: Path, code: int = 0) -> str:
        environ = {"PATH": f"{bin_folder}:{tools}", "HOME": str(folder), "PERUN_CONFIG_DIR": str(folder)}
        argv = [str(bin_folder / "perun"), *map(str, arguments)]
        done = subprocess.run(argv, cwd=cwd, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def installed(folder: Path, wheel: Path) -> Path:
    """A fresh environment with the wheel; answers with its folder of commands."""
    venv.create(folder / "venv", with_pip=True)
    bin_folder = folder / "venv" / "bin"
    subprocess.run([bin_folder / "python", "-m", "pip", "install", "--quiet", wheel], check=True)
    return bin_folder


@pytest.mark.slow
def test_a_release_that_is_tried_changes_nothing_but_dist(release: tuple[Path, str]) -> None:
    folder, said = release
    (built,) = (folder / "dist").glob("*.whl")
    (sources,) = (folder / "dist").glob("*.tar.gz")
    assert built.name.startswith("perun_pvs-9.8.7-cp311-abi3-manylinux_2_")
    with tarfile.open(sources) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"PKG-INFO", "meson.build", "tools/build_backend.py", "src/perun/__init__.py"} <= names
    with zipfile.ZipFile(built) as wheel:
        packed = set(wheel.namelist())
        assert b'__version__ = "9.8.7"' in wheel.read("perun/__init__.py")
    assert packed >= BUILT | WITH_CLANG
    assert [line for line in said.splitlines() if line.startswith("would run: ")] == [
        "would run: git tag --annotate --message Release 9.8.7 v9.8.7",
        "would run: git push origin v9.8.7",
        f"would run: twine upload --non-interactive dist/{sources.name} dist/{built.name}"
        if sources.name < built.name
        else f"would run: twine upload --non-interactive dist/{built.name} dist/{sources.name}",
    ]
    assert git(folder, "tag") == ""
    assert git(folder, "status", "--porcelain") == ""


@pytest.mark.slow
def test_the_wheel_measures_where_no_compiler_is(fresh: Callable[..., Any], tmp_path: Path) -> None:
    source = tmp_path / "program.c"
    source.write_text(
        "#include <stdlib.h>\n"
        "void *keep[50];\n"
        "__attribute__((noinline)) void *grow(int n) { return malloc(16 * n + 1); }\n"
        "int main(void) { for (int n = 0; n < 50; n++) keep[n] = grow(n); return 0; }\n"
    )
    project = tmp_path / "project"
    project.mkdir()
    # What is measured was compiled elsewhere; the hooks are those of `perun collect complexity`.
    for name, option in (("program", "-fno-omit-frame-pointer"), ("hooked", "-finstrument-functions")):
        subprocess.run(["cc", "-g", "-O1", option, "-o", project / name, source], check=True)
    fresh("init", "--vcs-type", "git", cwd=project)
    git(project, "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "One")
    fresh("collect", "-c", "./program", "memory", cwd=project)
    assert "grow" in fresh("show", "0@p", "flamegraph", "--format", "folded", cwd=project)
    fresh("show", "0@p", "flamegraph", "--filename", "flame.html", cwd=project)
    assert "grow" in (project / "flame.html").read_text("utf-8")
    assert fresh("show", "0@p", "bars", "--of", "amount", "--by", "uid", "--terminal", cwd=project)
    refusal = fresh("show", "0@p", "bars", "--of", "amount", "--by", "uid", cwd=project, code=9)
    assert "error: Bokeh is not installed, and pages with charts need it" in refusal
    assert "-m pip install 'bokeh" in refusal
    fresh("add", "0@p", cwd=project)
    assert "memory" in fresh("status", cwd=project)
    said = fresh("doctor", cwd=project)
    assert "warn  bars (pages): Bokeh is not installed" in said
    assert "ok    memory: can run here" in said
    assert "ok    complexity: can run here" in said
    assert "its probes were not built" not in said
    if "ok    trace (ebpf): can run here" in said:
        fresh("collect", "-c", "./program", "trace", "--strategy", "custom", "--func", "grow", cwd=project)
        assert "grow" in fresh("show", "0@p", "flamegraph", "--format", "folded", cwd=project)
    fresh("collect", "-c", "./hooked", "complexity", cwd=project)
    assert "grow" in fresh("show", "0@p", "flamegraph", "--format", "folded", cwd=project)
    fresh("collect", "-c", "./program", "time", "--repeat", "1", "--warmup", "0", cwd=project)


@pytest.mark.slow
def test_a_wheel_built_without_clang_says_what_it_lacks(tmp_path: Path) -> None:
    tools = without_clang(tmp_path)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"),
            *("--wheel-dir", tmp_path, PROJECT),
        ],
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{tools}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (built,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        assert not WITH_CLANG & set(archive.namelist())
    bin_folder = installed(tmp_path, built)
    environ = {**os.environ, "PATH": f"{bin_folder}:{tools}"}
    said = subprocess.check_output([bin_folder / "perun", "doctor"], text=True, env=environ, cwd=tmp_path)
    assert "warn  trace (ebpf): " in said
    if os.uname().machine == "x86_64":
        assert "its probes were not built" in said
        again = f"{bin_folder / 'python'} -m pip install --force-reinstall ."
        assert f"apt-get install clang libbpf-dev; then, in the sources of Perun: {again}" in said


def without_clang(folder: Path) -> Path:
    """A folder for the PATH with all of the machine's programs but clang."""
    tools = folder / "programs"
    tools.mkdir()
    for path in (path for place in os.environ["PATH"].split(os.pathsep) for path in Path(place).glob("*")):
        if not path.name.startswith("clang") and not (tools / path.name).exists():
            (tools / path.name).symlink_to(path)
    return tools


STUBS = {
    "tools/make_venv.sh": 'mkdir -p "$1/bin" && cp tools/python "$1/bin"',
    "tools/python": 'echo "$*" >>log',
    "tools/install_tools.sh": '[ "$1" != tracers ] || cp tools/python ../programs/clang',
    "demo/run.sh": "echo demo >>log",
    **dict.fromkeys(("requirements/run.txt", "requirements/test.txt", "meson.build", "pyproject.toml"), ""),
    **dict.fromkeys(("README.md", "src/module.py"), ""),
}


def test_perun_is_installed_anew_when_a_tool_it_is_built_with_comes(tmp_path: Path) -> None:
    """The commands of the README in its order; the tracers come with the second."""
    tools, project = without_clang(tmp_path), tmp_path / "project"
    for name, content in STUBS.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(f"#!/bin/sh\n{content}\n")
        (project / name).chmod(0o755)
    for name in ("Makefile", "tools/builds_with.sh"):
        shutil.copy(PROJECT / name, project / name)

    def made(*words: str) -> list[str]:
        (project / "log").unlink(missing_ok=True)
        environ = {"PATH": str(tools), "HOME": str(tmp_path)}
        subprocess.run(["make", "--silent", *words], cwd=project, env=environ, check=True)
        return re.findall(r"^demo|-m pytest|--no-deps \.$", (project / "log").read_text(), re.MULTILINE)

    assert made("demo") == ["--no-deps .", "demo"]
    assert made("demo") == ["demo"]
    assert made("test", "LINT=", "--jobs=9") == ["--no-deps .", "-m pytest"]
    assert made("test", "LINT=") == ["-m pytest"]
    assert made("demo") == ["demo"]


@pytest.mark.slow
@pytest.mark.parametrize("installer", ["pipx", "uv"])
def test_installers_of_applications(installer: str, release: tuple[Path, str], tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    bin_folder = tmp_path / "venv" / "bin"
    done = subprocess.run(
        [bin_folder / "python", "-m", "pip", "install", "--quiet", installer],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"{installer} cannot be installed: {done.stderr.strip().splitlines()[-1]}")
    (built,) = (release[0] / "dist").glob("*.whl")
    places = {"PIPX_HOME": "home", "PIPX_BIN_DIR": "bin", "UV_TOOL_DIR": "home", "UV_TOOL_BIN_DIR": "bin"}
    environ = {**os.environ, **{name: str(tmp_path / place) for name, place in places.items()}}
    words = {"pipx": ["install"], "uv": ["tool", "install", "--python", sys.executable]}[installer]
    subprocess.run([bin_folder / installer, *words, built], env=environ, check=True)
    perun = tmp_path / "bin" / "perun"
    assert subprocess.check_output([perun, "--version"], text=True) == "perun 9.8.7\n"
    said = subprocess.run([perun, "doctor"], capture_output=True, text=True, cwd=tmp_path, check=True).stdout
    # Some releases of pipx make environments by uv, where it is installed; these have no pip.
    found = re.search(r"Bokeh is not installed.*?install it with: (.*?);", said, re.DOTALL)
    assert found, said
    path = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(["sh", "-c", f"{found[1]} --dry-run"], env={**environ, "PATH": path}, check=True)
